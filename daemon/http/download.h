/* A file as an answer that ends, broken off, when the token it was asked for with is revoked or has
 * expired: a slow reader may take weights or a backup for hours. */
#pragma once

#include <stdint.h>

struct tokens;
struct MHD_Response;

/* Bytes [from, from + bytes) of fd, which the response closes; NULL leaves it open. The tokens must
 * outlive it. */
struct MHD_Response *download_response(struct tokens *tokens, int64_t token, int fd, uint64_t from,
                                       uint64_t bytes);
