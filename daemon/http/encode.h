/* What is done to a ready answer on its way out: an entity tag, and gzip for those who take it. */
#pragma once

#include "daemon/http/reply.h"

/* Gives an answer without an ETag one of its body's digest; where if_none_match (NULL: not sent)
 * has it, the answer becomes 304 without a body. */
void encode_tag(struct reply *r, const char *if_none_match);

/* Compresses a body of a kilobyte or more where accept_encoding (NULL: not sent) takes gzip. */
void encode_compress(struct reply *r, const char *accept_encoding);
