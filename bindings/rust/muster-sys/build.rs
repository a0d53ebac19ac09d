// SPDX-License-Identifier: MIT
//! Finds libmuster: the file or folder that MUSTER_LIBRARY names, else what pkg-config says; with the feature `vendored` the
//! library is built from its sources instead, which needs CMake and a C++20 compiler. Crates that depend on this one find
//! the folder of the C headers in DEP_MUSTER_INCLUDE, where it is known. docs.rs has no library, and links none.
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
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
        link(folder);
    } else if env::var_os("CARGO_FEATURE_VENDORED").is_some() {
        build_vendored();
    } else {
        ask_pkg_config();
    }
}

fn link(folder: &Path) {
    println!("cargo:rustc-link-search=native={}", folder.display());
    println!("cargo:rustc-link-lib=dylib=muster");
}

// The sources are in the package of this crate, or around it in a checkout.
fn build_vendored() {
    let own = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let packed = own.join("vendor");
    let sources = if packed.is_dir() { packed } else { own.join("../../..") };
    println!("cargo:rerun-if-changed={}", sources.join("src").display());
    println!("cargo:rerun-if-changed={}", sources.join("include").display());
    let build = out.join("build");
    let cmake = env::var_os("CMAKE").unwrap_or_else(|| "cmake".into());
    let mut configure = Command::new(&cmake);
    configure.arg("-S").arg(&sources).arg("-B").arg(&build).args([
        "-DCMAKE_BUILD_TYPE=Release",
        "-DMUSTER_UNITY=ON",
        "-DMUSTER_LIBRARY_ONLY=ON",
    ]);
    let fetched = sources.join("build/third_party"); // what a build of this checkout has fetched already
    if fetched.is_dir() {
        configure.arg(format!("-DMUSTER_THIRD_PARTY={}", fetched.display()));
    }
    run(&mut configure);
    let mut compile = Command::new(&cmake);
    compile.arg("--build").arg(&build).args(["--target", "muster", "--parallel"]);
    compile.arg(env::var("NUM_JOBS").unwrap_or_else(|_| "1".into()));
    run(&mut compile);
    // A folder with nothing else in it: `cargo run` and `cargo test` let programs look there.
    let folder = out.join("lib");
    fs::create_dir_all(&folder).expect("a folder for the library");
    for entry in fs::read_dir(&build).expect("the folder of the build").flatten() {
        let name = entry.file_name();
        if name.to_string_lossy().starts_with("libmuster.so") {
            let to = folder.join(&name);
            fs::copy(entry.path(), &to).unwrap_or_else(|why| panic!("{}: {}", to.display(), why));
        }
    }
    println!("cargo:include={}", sources.join("include").display());
    println!("cargo:libdir={}", folder.display());
    link(&folder);
}

fn run(command: &mut Command) {
    match command.status() {
        Ok(status) if status.success() => (),
        Ok(status) => {
            panic!("{:?} ended with {}; the feature vendored needs CMake 3.25 and a C++20 compiler", command, status)
        }
        Err(why) => {
            panic!("{:?} cannot be started ({}); the feature vendored needs CMake 3.25", command.get_program(), why)
        }
    }
}

fn ask_pkg_config() {
    let hint = "or set MUSTER_LIBRARY to libmuster.so, or use the feature vendored";
    let program = env::var_os("PKG_CONFIG").unwrap_or_else(|| "pkg-config".into());
    let output = match Command::new(&program).args(["--libs", "muster"]).output() {
        Ok(output) => output,
        Err(why) => panic!("{:?} cannot be started ({}); {}", program, why, hint),
    };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        panic!("libmuster is not found: {}; set PKG_CONFIG_PATH, {}", said.trim(), hint);
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
