/* distort SIZE CHANNELS OP MAGNITUDE: reads pixels (SIZE, SIZE, CHANNELS) from standard input and
 * writes them distorted. */
#include <stdio.h>
#include <stdlib.h>

#include "worker/data/distort.h"

int main(int argc, char **argv)
{
    static uint8_t pixels[1 << 20], scratch[1 << 20];

    if (argc != 5)
        return 2;
    int size = atoi(argv[1]), channels = atoi(argv[2]);
    size_t bytes = (size_t)size * (size_t)size * (size_t)channels;
    if (bytes > sizeof pixels || fread(pixels, 1, bytes, stdin) != bytes)
        return 2;
    distort_apply((enum distort_op)atoi(argv[3]), atof(argv[4]), pixels, size, channels, scratch);
    return fwrite(pixels, 1, bytes, stdout) == bytes ? 0 : 1;
}
