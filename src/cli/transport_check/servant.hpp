// SPDX-License-Identifier: MIT
#pragma once
// A host-served transport of another author: a shared object that serves its scheme in each context it is given, on
// threads of its own. It exports
//   void *muster_serve_begin(muster_context *context, muster_error *error);   NULL: it cannot
//   void muster_serve_end(void *serving);                                     returns when its threads have ended
#include <muster/context.h>

#include <string>

namespace check {

class Servant {
  public:
    Servant(const std::string &file, muster_context *context);
    ~Servant();
    Servant(const Servant &) = delete;
    Servant &operator=(const Servant &) = delete;

  private:
    void (*end_)(void *serving) = nullptr;
    void *serving_ = nullptr;
};

} // namespace check
