// SPDX-License-Identifier: MIT
#include "transport_check/servant.hpp"

#include "transport_check/harness.hpp"

#include <dlfcn.h>

namespace check {

Servant::Servant(const std::string &file, muster_context *context) {
    void *const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL); // never closed: it has had threads
    if (library == nullptr) fail("%s", dlerror());
    const auto begin =
        reinterpret_cast<void *(*)(muster_context *, muster_error *)>(dlsym(library, "muster_serve_begin"));
    end_ = reinterpret_cast<void (*)(void *)>(dlsym(library, "muster_serve_end"));
    if (begin == nullptr || end_ == nullptr) fail("%s lacks muster_serve_begin() or muster_serve_end()", file.c_str());
    muster_error error{};
    serving_ = begin(context, &error);
    if (serving_ == nullptr) fail("%s cannot serve: %s", file.c_str(), error.message);
}

Servant::~Servant() {
    if (serving_ != nullptr) end_(serving_);
}

} // namespace check
