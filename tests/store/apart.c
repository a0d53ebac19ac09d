// SPDX-License-Identifier: MIT
// A client of a store that does what it is told, line by line, and says what came of it.
#include <muster/muster.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    muster_context *context;
    muster_store *store;
    muster_error why;
    if (argc != 2 || muster_context_create(NULL, &context, &why) != MUSTER_OK) return 2;
    if (muster_store_open(context, argv[1], strlen(argv[1]), NULL, INT64_C(10000000000), &store, &why) != MUSTER_OK)
        return fprintf(stderr, "%s\n", why.message), 1;
    for (char line[40]; fgets(line, sizeof line, stdin) != NULL;) {
        const bool adds = strcmp(line, "add\n") == 0;
        const muster_store_op op = {
            .kind = adds ? MUSTER_STORE_ADD : MUSTER_STORE_READ, .key = "n", .key_bytes = 1, .number = adds ? 1 : 0};
        muster_store_result *result;
        muster_store_entry entry;
        if (muster_store_do(store, &op, 1, -1, &result, &why) != MUSTER_OK)
            return fprintf(stderr, "%s\n", why.message), 1;
        muster_store_result_entry(result, 0, &entry);
        if (adds)
            printf("added %lld\n", (long long)entry.number);
        else
            printf("read %.*s\n", (int)entry.value_bytes, (const char *)entry.value);
        fflush(stdout);
        muster_store_result_release(result);
    }
    muster_store_release(store);
    muster_context_close(context, -1);
    muster_context_release(context);
    return 0;
}
