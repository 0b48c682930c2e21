/*
 * Completion for shells: `trainctl __complete WORD...`, called by etc/completions with the words
 * behind "trainctl" up to the cursor (the last may be empty or half a word). Prints what the last
 * word could become, a line each: the word, a tab, a remark. A line ":file" means: also files.
 */
#pragma once

int complete(int argc, char **argv); /* argv[0] is the first word; always 0 */
