# SPDX-License-Identifier: MIT
"""Conan 2: the library of the release around this file."""
import os

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy

required_conan_version = ">=2.0"


class Muster(ConanFile):
    name = "muster"
    version = "0.1.0"
    license = "MIT"
    description = "Streams, transports and clusters for language runtimes, as a shared library with a C interface"
    topics = ("cluster", "transport", "rendezvous", "ffi")
    package_type = "shared-library"  # a process has one state of Muster
    settings = "os", "arch", "compiler", "build_type"

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("muster is for Linux")
        check_min_cppstd(self, 20)

    def build_requirements(self):
        self.tool_requires("cmake/[>=3.25]")

    def layout(self):
        cmake_layout(self)

    def export_sources(self):
        root = os.path.join(self.recipe_folder, os.pardir, os.pardir)
        if not os.path.isdir(os.path.join(root, "third_party")):
            raise ConanInvalidConfiguration("no third_party here: unpack what cmake/make-release makes")
        for part in ("CMakeLists.txt", "LICENSE", "cmake/*", "debian/copyright", "include/*", "src/*", "third_party/*"):
            copy(self, part, root, self.export_sources_folder)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["MUSTER_LIBRARY_ONLY"] = True
        toolchain.cache_variables["MUSTER_UNITY"] = True
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        copy(self, "copyright", os.path.join(self.source_folder, "debian"), os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        self.cpp_info.libs = ["muster"]
        self.cpp_info.set_property("cmake_file_name", "Muster")
        self.cpp_info.set_property("cmake_target_name", "Muster::muster")
        self.cpp_info.set_property("pkg_config_name", "muster")
