// A guest that does what goes wrong easily.
#include "stile.h"

static const stile_string none = {"", 0};

// Blobs: lists of bytes both ways, numbers of 64 bits.
static stile_result values(stile_env env, stile_json input) {
  stile_error error;
  stile_blob_store store;
  stile_blob_writer writer;
  stile_blob blob;
  stile_string text;
  stile_bytes bytes;
  stile_buffer out = {0};
  if (!stile_env_blob(env, stile_text("blobs"), &store, &error)) return stile_refused(error);
  if (!stile_blob_store_create(store, stile_text("text/plain"), &writer, &error)) return stile_refused(error);
  if (!stile_blob_writer_append_text(writer, stile_get_string(input, "text", none), &error)) return stile_refused(error);
  if (!stile_blob_writer_append(writer, (stile_bytes){(uint8_t[]){'!', '\n'}, 2}, &error)) return stile_refused(error);
  if (!stile_blob_store_finish(store, writer, &blob, &error)) return stile_refused(error);
  if (!stile_blob_text(blob, 1 << 20, &text, &error) || !stile_blob_bytes(blob, 0, 2, &bytes, &error)) return stile_refused(error);
  stile_list_tuple_string_string names = stile_env_names(env);
  stile_begin(&out, '{');
  stile_put_name(&out, "text"), stile_put_string(&out, text);
  stile_put_name(&out, "size"), stile_put_int(&out, (int64_t)stile_blob_size(blob));
  stile_put_name(&out, "type"), stile_put_string(&out, stile_blob_media_type(blob));
  stile_put_name(&out, "bytes"), stile_begin(&out, '[');
  for (size_t k = 0; k < bytes.len; k++) stile_put_int(&out, bytes.data[k]);
  stile_end(&out, ']');
  stile_put_name(&out, "names"), stile_begin(&out, '{');
  for (size_t k = 0; k < names.len; k++) {
    stile_put_name_string(&out, names.data[k].f0);
    stile_put_bool(&out, stile_starts_with(names.data[k].f1, stile_text("stile:capability/")));
  }
  stile_end(&out, '}'), stile_end(&out, '}');
  stile_blob_drop(blob);
  return stile_return(out);
}

// kv: options as parameters and results, signed numbers.
static stile_result stores(stile_env env, stile_json input) {
  (void)input;
  stile_error error;
  stile_kv_bucket data;
  stile_option_string before, after;
  bool swapped, refused;
  int64_t sum;
  stile_string one = stile_text("one"), two = stile_text("two"), key = stile_text("key");
  stile_buffer out = {0};
  if (!stile_env_kv(env, stile_text("data"), &data, &error)) return stile_refused(error);
  if (!stile_kv_bucket_get(data, key, &before, &error)) return stile_refused(error);
  if (!stile_kv_bucket_compare_and_set(data, key, NULL, &one, &swapped, &error)) return stile_refused(error);
  if (!stile_kv_bucket_compare_and_set(data, key, NULL, &two, &refused, &error)) return stile_refused(error);
  if (!stile_kv_bucket_get(data, key, &after, &error)) return stile_refused(error);
  if (!stile_kv_bucket_increment(data, stile_text("sum"), -3, &sum, &error)) return stile_refused(error);
  stile_begin(&out, '[');
  stile_put_bool(&out, before.some), stile_put_bool(&out, swapped), stile_put_bool(&out, refused), stile_put_bool(&out, after.some);
  stile_put_string(&out, after.value), stile_put_int(&out, sum);
  stile_end(&out, ']');
  return stile_return(out);
}

// http: lists of records with options in them, and a client that they narrow.
static stile_result narrows(stile_env env, stile_json input) {
  (void)input;
  stile_error error;
  stile_http_client site, narrow;
  stile_buffer out = {0};
  if (!stile_env_http(env, stile_text("site"), &site, &error)) return stile_refused(error);
  stile_http_rule rule = {
    .scheme = stile_text("http"), .host = stile_text("example.com"), .port = {true, 8080},
    .methods = STILE_LIST(stile_list_string, stile_text("GET"), stile_text("PUT")), .path = stile_text("/a/**"),
  };
  stile_http_rule other = {.scheme = stile_text("https"), .host = stile_text("example.com"), .methods = STILE_LIST(stile_list_string, stile_text("GET")), .path = stile_text("/**")};
  if (!stile_http_client_narrow(site, STILE_LIST(stile_list_http_rule, rule, other), &narrow, &error)) return stile_refused(error);
  stile_list_http_rule rules = stile_http_client_rules(narrow);
  stile_begin(&out, '[');
  for (size_t k = 0; k < rules.len; k++) {
    stile_http_rule *r = &rules.data[k];
    stile_buffer line = {0};
    stile_add(&line, r->scheme), stile_add(&line, stile_text(" ")), stile_add(&line, r->path);
    for (size_t m = 0; m < r->methods.len; m++) stile_add(&line, stile_text(" ")), stile_add(&line, r->methods.data[m]);
    if (r->port.some) stile_add(&line, stile_text(" ")), stile_add_int(&line, r->port.value);
    stile_put_string(&out, stile_built(line));
  }
  stile_end(&out, ']');
  return stile_return(out);
}

// The handle is gone once it was passed on; what an env lacks is an error.
static stile_result passes(stile_env env, stile_json input) {
  (void)input;
  stile_error error;
  stile_string reason;
  stile_kv_bucket data, again;
  stile_env inner;
  stile_option_string value;
  stile_buffer out = {0};
  if (stile_env_subset(env, STILE_LIST(stile_list_string, stile_text("nothing")), &inner, &reason)) return stile_failed(stile_text("a name that is missing"));
  if (!stile_env_kv(env, stile_text("data"), &data, &error)) return stile_refused(error);
  if (!stile_env_subset(env, (stile_list_string){0}, &inner, &reason)) return stile_failed(reason);
  if (!stile_env_put_kv(inner, stile_text("mine"), data, &error)) return stile_refused(error);
  if (!stile_env_kv(inner, stile_text("mine"), &again, &error)) return stile_refused(error);
  if (!stile_kv_bucket_get(again, stile_text("x"), &value, NULL)) return stile_failed(stile_text("the bucket that was passed on"));
  stile_put_bool(&out, value.some);
  return stile_return(out);
}

// More memory than the module begins with, in pieces of all sizes, and at last more than the host allows.
static stile_result memory(stile_env env, stile_json input) {
  (void)env;
  int64_t bytes = stile_get_int(input, "bytes", 0), sum = 0;
  stile_buffer out = {0};
  for (int64_t size = 1; size <= bytes; size *= 2) {
    char *p = stile_alloc((size_t)size);
    for (int64_t k = 0; k < size; k++) sum += p[k];
    p[0] = p[size - 1] = 1;
  }
  stile_put_int(&out, sum);
  return stile_return(out);
}

// Recursion that the stack cannot hold.
static int64_t down(volatile int64_t *above, int64_t n) {
  volatile int64_t here[8] = {n, above[0]};
  return n ? down(here, n - 1) + here[1] : 0;
}

static stile_result deep(stile_env env, stile_json input) {
  (void)env;
  int64_t zero = 0;
  stile_buffer out = {0};
  stile_put_int(&out, down(&zero, stile_get_int(input, "calls", 0)));
  return stile_return(out);
}

static stile_result not_utf8(stile_env env, stile_json input) {
  (void)env, (void)input;
  return stile_failed(stile_text("\xff"));
}

static stile_result echo(stile_env env, stile_json input) {
  (void)env;
  stile_buffer out = {0};
  stile_put_json(&out, stile_get(input, "v"));
  return stile_return(out);
}

static stile_result numbers(stile_env env, stile_json input) {
  (void)env;
  stile_buffer out = {0};
  stile_begin(&out, '[');
  for (stile_json_items i = stile_items(stile_get(input, "of")); stile_next(&i);) {
    double n = 0;
    if (stile_json_number(i.value, &n)) stile_put_number(&out, n * stile_get_number(input, "by", 1));
  }
  stile_put_number(&out, __builtin_nan("")), stile_put_number(&out, -__builtin_inf());
  stile_end(&out, ']');
  return stile_return(out);
}

// Each way to random numbers.
static stile_result draws(stile_env env, stile_json input) {
  (void)input;
  stile_error error;
  stile_random random;
  stile_bytes bytes;
  stile_buffer out = {0}, text = {0}, number = {0};
  if (!stile_env_random(env, stile_text("random"), &random, &error)) return stile_refused(error);
  if (!stile_random_bytes(random, 17, &bytes, &error)) return stile_refused(error);
  for (size_t k = 0; k < bytes.len; k++) stile_add_int(&text, bytes.data[k]), stile_add(&text, stile_text(" "));
  stile_add_int(&number, (int64_t)stile_random_u64(random));
  stile_begin(&out, '{');
  stile_put_name(&out, "bytes"), stile_put_string(&out, stile_built(text));
  stile_put_name(&out, "u64"), stile_put_string(&out, stile_built(number));
  stile_end(&out, '}');
  return stile_return(out);
}

const stile_tool stile_tools[] = {
  {.name = "values", .run = values, .output = STILE_JSON({"type": "object"})},
  {.name = "stores", .run = stores},
  {.name = "narrows", .run = narrows},
  {.name = "passes", .run = passes},
  {.name = "memory", .run = memory},
  {.name = "deep", .run = deep},
  {.name = "not_utf8", .run = not_utf8},
  {.name = "echo", .run = echo},
  {.name = "numbers", .run = numbers},
  {.name = "draws", .run = draws},
  {0},
};
