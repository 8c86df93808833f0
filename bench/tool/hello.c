/* The least that a process can do with an input: argv[1] is JSON, or stdin is. */
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
  char input[4096];
  if (argc > 1) {
    snprintf(input, sizeof input, "%s", argv[1]);
  } else {
    size_t n = fread(input, 1, sizeof input - 1, stdin);
    input[n] = 0;
  }
  printf("{\"hello\":%s}\n", input);
  return 0;
}
