// Reads documents from stdin, each after its length, and writes each as stile.c reads and writes it, or "!" if it is not JSON. It is
// built for this machine, with what finds accesses outside memory.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stile.h"

// Stops what can only happen with a value that was checked.
static void must(bool is, bool checked) {
  if (!is && checked) abort();
}

static void copy(stile_buffer *out, stile_json v, bool checked, int depth) {
  bool truth = false;
  int64_t integer;
  double number;
  stile_string text = {0};
  stile_json_type type = stile_json_type_of(v);
  if (!checked && depth > STILE_JSON_DEPTH) type = STILE_JSON_NULL;
  switch (type) {
  case STILE_JSON_ARRAY:
    stile_begin(out, '[');
    for (stile_json_items i = stile_items(v); stile_next(&i);) copy(out, i.value, checked, depth + 1);
    stile_end(out, ']');
    return;
  case STILE_JSON_OBJECT:
    stile_begin(out, '{');
    for (stile_json_items i = stile_items(v); stile_next(&i);) {
      stile_put_name_string(out, i.name);
      copy(out, i.value, checked, depth + 1);
      char *name = stile_c_string(i.name);
      must(stile_json_type_of(stile_get(v, name)) != STILE_JSON_ABSENT || strlen(name) < i.name.len, checked);
    }
    stile_end(out, '}');
    return;
  case STILE_JSON_STRING:
    must(stile_json_string(v, &text) && stile_is_utf8(text), checked);
    stile_put_string(out, text);
    return;
  case STILE_JSON_NUMBER:
    if (stile_json_int(v, &integer)) stile_put_int(out, integer);
    else if (stile_json_number(v, &number)) stile_put_number(out, number);
    else stile_put_null(out);
    return;
  case STILE_JSON_BOOL:
    must(stile_json_bool(v, &truth), checked);
    stile_put_bool(out, truth);
    return;
  default:
    stile_put_json(out, type == STILE_JSON_NULL ? (stile_json){0} : v);
  }
}

int main(void) {
  uint32_t len;
  while (fread(&len, sizeof len, 1, stdin) == 1) {
    char *data = malloc(len + (len == 0)); // its size is exact, so that one byte more is noticed
    if (!data || (len && fread(data, len, 1, stdin) != 1)) return 1;
    stile_string text = {data, len};
    stile_json v;
    stile_buffer out = {0};
    if (stile_json_parse(text, &v)) {
      copy(&out, v, true, 0);
    } else {
      stile_buffer ignored = {0};
      copy(&ignored, (stile_json){text}, false, 0); // nobody has checked it, but nothing outside it is read
      stile_put_string(&out, text);
      if (fwrite((uint32_t[]){(uint32_t)out.len + 1}, sizeof len, 1, stdout) != 1 || fwrite("!", 1, 1, stdout) != 1 || fwrite(out.data, out.len, 1, stdout) != 1 || fflush(stdout)) return 1;
      free(data);
      continue;
    }
    len = (uint32_t)out.len;
    if (fwrite(&len, sizeof len, 1, stdout) != 1 || (len && fwrite(out.data, len, 1, stdout) != 1) || fflush(stdout)) return 1;
    free(data);
  }
  return 0;
}
