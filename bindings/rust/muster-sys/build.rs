// SPDX-License-Identifier: MIT
//! Finds libmuster: the file or folder that MUSTER_LIBRARY names, else what pkg-config says. Crates that depend on this one
//! find the folder of the C headers in DEP_MUSTER_INCLUDE, where pkg-config knows it. docs.rs has no library, and links none.
use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=MUSTER_LIBRARY");
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    println!("cargo:rerun-if-env-changed=DOCS_RS");
    if env::var_os("DOCS_RS").is_some() {
        return;
    }
    if let Some(named) = env::var_os("MUSTER_LIBRARY") {
        let path = Path::new(&named);
        let folder = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
        println!("cargo:rustc-link-search=native={}", folder.display());
        println!("cargo:rustc-link-lib=dylib=muster");
        return;
    }
    let program = env::var_os("PKG_CONFIG").unwrap_or_else(|| "pkg-config".into());
    let output = match Command::new(&program).args(["--libs", "muster"]).output() {
        Ok(output) => output,
        Err(why) => panic!("{:?} cannot be started ({}); or set MUSTER_LIBRARY to libmuster.so", program, why),
    };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        panic!("libmuster is not found: {}; set PKG_CONFIG_PATH, or MUSTER_LIBRARY to libmuster.so", said.trim());
    }
    if let Ok(found) = Command::new(&program).args(["--variable=includedir", "muster"]).output() {
        println!("cargo:include={}", String::from_utf8_lossy(&found.stdout).trim());
    }
    for word in String::from_utf8_lossy(&output.stdout).split_whitespace() {
        if let Some(folder) = word.strip_prefix("-L") {
            println!("cargo:rustc-link-search=native={}", folder);
        } else if let Some(library) = word.strip_prefix("-l") {
            println!("cargo:rustc-link-lib={}", library);
        }
    }
}
