// SPDX-License-Identifier: MIT
// libzmq aborts the process when a broker with the right CURVE key sends a temporary key of small order in its WELCOME:
// crypto_box_beforenm() fails, and libzmq asserts that it does not (curve_client_tools.hpp, process_welcome()). A
// plug-in is before the libraries it brings along when their symbols are looked up, so the libzmq that comes with it
// calls this function in place of libsodium's. A key that nobody knows makes the handshake fail at its next step. A
// libzmq that the program has loaded itself does not come here; docs/adr/0009 says what remains then.
#include <muster/base.h>

#include <sodium.h>

extern "C" MUSTER_API int crypto_box_beforenm(unsigned char *key, const unsigned char *theirs,
                                              const unsigned char *own) {
    if (crypto_box_curve25519xsalsa20poly1305_beforenm(key, theirs, own) == 0) return 0;
    randombytes_buf(key, crypto_box_BEFORENMBYTES);
    return 0;
}
