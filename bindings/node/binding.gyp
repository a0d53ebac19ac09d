# SPDX-License-Identifier: MIT
{
  "targets": [{
    "target_name": "muster",
    "sources": ["src/addon.c"],
    "cflags": ["-std=c11", "<!@(pkg-config --cflags muster)"],
    "libraries": ["<!@(pkg-config --libs muster)"],
    "ldflags": ["-Wl,-rpath,<!(pkg-config --variable=libdir muster)"]
  }]
}
