/* Completion for shells: etc/completions call `trainctl __complete WORD...` with the words after
 * "trainctl" up to the cursor; the last one may be empty or incomplete. Prints candidates for it,
 * one per line: the word, a tab, a description. ":file" means that files are candidates, too. */
#pragma once

int complete(int argc, char **argv); /* argv[0] is the first word; returns 0 */
