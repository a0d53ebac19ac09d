/* SPDX-License-Identifier: MIT */
#include <muster/muster.h>
#include <stdio.h>

int main(void) {
    muster_context *context;
    muster_error error;
    if (muster_context_create(NULL, &context, &error) != MUSTER_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    printf("muster %s\n", muster_version(NULL, NULL, NULL));
    muster_context_release(context);
    return 0;
}
