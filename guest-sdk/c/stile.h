// Extensions of Stile in C. Define stile_tools, and build it with stile.c:
//
//     static stile_result greet(stile_env env, stile_json input) {
//       stile_buffer out = {0};
//       stile_put_string(&out, stile_concat(stile_text("Hello "), stile_get_string(input, "name", stile_text("you"))));
//       return stile_return(out);
//     }
//
//     const stile_tool stile_tools[] = {
//       {.name = "greet", .description = "Greet somebody", .run = greet,
//        .input = STILE_JSON({"type": "object", "properties": {"name": {"type": "string"}}})},
//       {0},
//     };
//
//     clang --target=wasm32 -O2 -mbulk-memory -nostdlib -Wl,--no-entry -Wl,--stack-first -o core.wasm greet.c stile.c
//     stile componentize core.wasm -o greet.wasm
//
// It needs no C library, and works with one. An instance serves one call and is dropped with its memory, so nothing is freed. When
// memory ends, the call ends with the host's limit.
//
// Functions that can fail return whether they succeeded, and set *error, unless error is null, or else *out, which must not be null.
// Options that are parameters are pointers, null for none.
#ifndef STILE_H
#define STILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A text in UTF-8, without a zero at its end. The host ends a call that gives it anything but UTF-8: see stile_is_utf8.
typedef struct { const char *data; size_t len; } stile_string;

typedef struct { uint8_t *data; size_t len; } stile_bytes;

// Generated from the WIT by guest-sdk/generate: do not edit.
typedef struct {
  // The binding the operation went through, e.g. "github".
  stile_string binding;
  // The operation that was denied, e.g. "POST https://api.github.com/user/repos".
  stile_string operation;
  // Why no rule allows it.
  stile_string reason;
  // The manifest line that would allow it.
  stile_string remedy;
} stile_denial;

enum {
  STILE_ERROR_DENIED,
  // The reason that the revoker gave.
  STILE_ERROR_REVOKED,
  STILE_ERROR_EXPIRED,
  // A budget or limit was reached. The text names it and its value.
  STILE_ERROR_EXHAUSTED,
  STILE_ERROR_TIMED_OUT,
  STILE_ERROR_TOO_LARGE,
  STILE_ERROR_NOT_FOUND,
  STILE_ERROR_ALREADY_EXISTS,
  // The content changed since it was read.
  STILE_ERROR_CONFLICT,
  STILE_ERROR_INVALID,
  // The other side failed: connection, TLS, protocol, disk.
  STILE_ERROR_UNAVAILABLE,
  // The process ended during the operation. It may have happened. Only durable calls see this.
  STILE_ERROR_INTERRUPTED,
};
typedef struct {
  uint8_t tag; // STILE_ERROR_DENIED ...
  union {
    stile_denial denied;
    stile_string revoked;
    stile_string exhausted;
    uint64_t too_large;
    stile_string not_found;
    stile_string already_exists;
    stile_string conflict;
    stile_string invalid;
    stile_string unavailable;
    stile_string interrupted;
  } value;
} stile_error;

typedef struct {
  stile_string name;
  stile_string value;
} stile_header;

// A handle of stile:capability/env/env.
typedef struct { uint32_t handle; } stile_env;

// Gives the handle up. The end of a call drops all that are left.
void stile_env_drop(stile_env self);

typedef struct {
  stile_string f0;
  stile_string f1;
} stile_tuple_string_string;

typedef struct { stile_tuple_string_string *data; size_t len; } stile_list_tuple_string_string;

// (name, interface) of each binding.
stile_list_tuple_string_string stile_env_names(stile_env self);

typedef struct { stile_string *data; size_t len; } stile_list_string;

// A new env with only these names, at most 10,000. A missing name is an error.
bool stile_env_subset(stile_env self, stile_list_string names, stile_env *out, stile_string *error);

// What a person configured for the component whose call this is: the JSON text of an object, "{}" if there is nothing.
stile_string stile_env_vars(stile_env self);

// A handle of stile:capability/blob/blob.
typedef struct { uint32_t handle; } stile_blob;

// Gives the handle up. The end of a call drops all that are left.
void stile_blob_drop(stile_blob self);

// A handle of stile:capability/blob/writer.
typedef struct { uint32_t handle; } stile_blob_writer;

// Gives the handle up. The end of a call drops all that are left.
void stile_blob_writer_drop(stile_blob_writer self);

// Blobs cost host memory and disk, so creating one requires a store.
typedef struct { uint32_t handle; } stile_blob_store;

// Gives the handle up. The end of a call drops all that are left.
void stile_blob_store_drop(stile_blob_store self);

uint64_t stile_blob_size(stile_blob self);

stile_string stile_blob_media_type(stile_blob self);

// "sha256:<hex>".
stile_string stile_blob_digest(stile_blob self);

// The content as text. Fails with `invalid` if it is not UTF-8, and with `too-large` beyond `max` bytes.
bool stile_blob_text(stile_blob self, uint64_t max, stile_string *out, stile_error *error);

// At most 262,144 bytes a call.
bool stile_blob_bytes(stile_blob self, uint64_t offset, uint32_t length, stile_bytes *out, stile_error *error);

// The same as a text, which is passed much faster than a list. It stands for words of 8 bytes, as the texts of
// `stile:extension/memory` do: first the number of bytes, then the bytes, and zeros up to a whole word.
bool stile_blob_packed(stile_blob self, uint64_t offset, uint32_t length, stile_string *out, stile_error *error);

// At most 262,144 bytes a call.
bool stile_blob_writer_append(stile_blob_writer self, stile_bytes bytes, stile_error *error);

bool stile_blob_writer_append_text(stile_blob_writer self, stile_string text, stile_error *error);

bool stile_blob_writer_append_blob(stile_blob_writer self, stile_blob source, stile_error *error);

bool stile_blob_store_create(stile_blob_store self, stile_string media_type, stile_blob_writer *out, stile_error *error);

bool stile_blob_store_finish(stile_blob_store self, stile_blob_writer writer, stile_blob *out, stile_error *error);

// The binding of this name, which must be of stile:capability/blob.
bool stile_env_blob(stile_env self, stile_string name, stile_blob_store *out, stile_error *error);

// Gives a binding of this name to what runs with this env. The handle is gone afterwards.
bool stile_env_put_blob(stile_env self, stile_string name, stile_blob_store store, stile_error *error);

// A handle of stile:capability/poll/pollable.
typedef struct { uint32_t handle; } stile_pollable;

// Gives the handle up. The end of a call drops all that are left.
void stile_pollable_drop(stile_pollable self);

bool stile_pollable_ready(stile_pollable self);

void stile_pollable_block(stile_pollable self);

typedef struct { stile_pollable *data; size_t len; } stile_list_pollable;

typedef struct { uint32_t *data; size_t len; } stile_list_u32;

stile_list_u32 stile_poll(stile_list_pollable pollables);

// Announces what the guest waits for when it returns from `start` or `resume` of `stile:extension/stepwise` with none. False if
// one is ready already or the call is not made in steps: the guest then waits in `poll`. It traps on an empty list.
bool stile_park(stile_list_pollable pollables);

typedef struct {
  stile_string url;
  stile_string title;
  uint16_t status;
} stile_browser_page;

// An element that can be seen, a text that can be seen, or a URL, in which `*` stands for any characters.
enum {
  STILE_BROWSER_AWAITED_SELECTOR,
  STILE_BROWSER_AWAITED_TEXT,
  STILE_BROWSER_AWAITED_URL,
};
typedef struct {
  uint8_t tag; // STILE_BROWSER_AWAITED_SELECTOR ...
  union {
    stile_string selector;
    stile_string text;
    stile_string url;
  } value;
} stile_browser_awaited;

enum {
  STILE_BROWSER_OUTCOME_NOTHING,
  STILE_BROWSER_OUTCOME_PAGE,
  STILE_BROWSER_OUTCOME_TEXT,
  STILE_BROWSER_OUTCOME_BLOB,
};
typedef struct {
  uint8_t tag; // STILE_BROWSER_OUTCOME_NOTHING ...
  union {
    stile_browser_page page;
    stile_string text;
    stile_blob blob;
  } value;
} stile_browser_outcome;

// Actions of one session run one after the other. Each takes at most 30 s. Selectors are CSS, and mean the first such element that can
// be seen. Without a selector, a function means the whole page.
typedef struct { uint32_t handle; } stile_browser_session;

// Gives the handle up. The end of a call drops all that are left.
void stile_browser_session_drop(stile_browser_session self);

// A handle of stile:capability/browser/pending.
typedef struct { uint32_t handle; } stile_browser_pending;

// Gives the handle up. The end of a call drops all that are left.
void stile_browser_pending_drop(stile_browser_pending self);

// Opens a page and waits until it has loaded. The outcome is a page, as that of `click`, `press` and `wait-for`.
bool stile_browser_session_open(stile_browser_session self, stile_string url, stile_browser_pending *out, stile_error *error);

bool stile_browser_session_click(stile_browser_session self, stile_string selector, stile_browser_pending *out, stile_error *error);

// Sets a field, an option or, with "true" or "false", a checkbox.
bool stile_browser_session_fill(stile_browser_session self, stile_string selector, stile_string text, stile_browser_pending *out, stile_error *error);

// Presses a key or a combination such as "Enter" or "Control+A".
bool stile_browser_session_press(stile_browser_session self, stile_string key, stile_browser_pending *out, stile_error *error);

bool stile_browser_session_wait_for(stile_browser_session self, const stile_browser_awaited *what, stile_browser_pending *out, stile_error *error);

typedef struct { bool some; stile_string value; } stile_option_string;

// Text that can be seen, at most 1 MiB.
bool stile_browser_session_text(stile_browser_session self, const stile_string *selector, stile_browser_pending *out, stile_error *error);

// At most 4 MiB.
bool stile_browser_session_html(stile_browser_session self, const stile_string *selector, stile_browser_pending *out, stile_error *error);

// The page as Markdown, cut at 256 KiB.
bool stile_browser_session_markdown(stile_browser_session self, stile_browser_pending *out, stile_error *error);

// Runs JavaScript in the page: an expression, a function to call, or the body of one. `arguments` is a list, and the outcome a value,
// as JSON of at most 1 MiB. An empty text is no value.
bool stile_browser_session_evaluate(stile_browser_session self, stile_string code, stile_string arguments, stile_browser_pending *out, stile_error *error);

// A PNG.
bool stile_browser_session_screenshot(stile_browser_session self, bool full_page, const stile_string *selector, stile_browser_pending *out, stile_error *error);

bool stile_browser_session_pdf(stile_browser_session self, stile_browser_pending *out, stile_error *error);

// The newest file that the page has downloaded and that was not asked for yet, once it has arrived; nothing if there is none.
bool stile_browser_session_download(stile_browser_session self, stile_browser_pending *out, stile_error *error);

// Drops the page, with its cookies and all else that it has kept.
bool stile_browser_session_leave(stile_browser_session self, stile_browser_pending *out, stile_error *error);

// Ready when the action has ended.
stile_pollable stile_browser_pending_subscribe(stile_browser_pending self);

// Can be taken once.
bool stile_browser_pending_take(stile_browser_pending self, stile_browser_outcome *out, stile_error *error);

// The binding of this name, which must be of stile:capability/browser.
bool stile_env_browser(stile_env self, stile_string name, stile_browser_session *out, stile_error *error);

// Gives a binding of this name to what runs with this env. The handle is gone afterwards.
bool stile_env_put_browser(stile_env self, stile_string name, stile_browser_session session, stile_error *error);

// A handle of stile:capability/clock/clock.
typedef struct { uint32_t handle; } stile_clock;

// Gives the handle up. The end of a call drops all that are left.
void stile_clock_drop(stile_clock self);

// Milliseconds since 1970-01-01T00:00:00Z.
uint64_t stile_clock_now(stile_clock self);

// Nanoseconds from an arbitrary start.
uint64_t stile_clock_monotonic(stile_clock self);

stile_pollable stile_clock_subscribe(stile_clock self, uint64_t nanoseconds);

// The binding of this name, which must be of stile:capability/clock.
bool stile_env_clock(stile_env self, stile_string name, stile_clock *out, stile_error *error);

// Gives a binding of this name to what runs with this env. The handle is gone afterwards.
bool stile_env_put_clock(stile_env self, stile_string name, stile_clock clock, stile_error *error);

enum {
  STILE_CODE_LEVEL_TRACE,
  STILE_CODE_LEVEL_DEBUG,
  STILE_CODE_LEVEL_INFO,
  STILE_CODE_LEVEL_WARN,
  STILE_CODE_LEVEL_ERROR,
};
typedef uint8_t stile_code_level;

typedef struct {
  stile_code_level level;
  stile_string text;
} stile_code_line;

// What the code threw. The lines of the stack are those of the code.
typedef struct {
  stile_string name;
  stile_string message;
  stile_string stack;
} stile_code_failure;

// A handle of stile:capability/code/runner.
typedef struct { uint32_t handle; } stile_code_runner;

// Gives the handle up. The end of a call drops all that are left.
void stile_code_runner_drop(stile_code_runner self);

// A handle of stile:capability/code/pending.
typedef struct { uint32_t handle; } stile_code_pending;

// Gives the handle up. The end of a call drops all that are left.
void stile_code_pending_drop(stile_code_pending self);

// Starts code and returns at once. `code` is the body of an async function with the parameters input, env and tools, in the language
// that the ending of `name` says. `input` is JSON. `env` is what the code has, besides a clock, random numbers and a console.
bool stile_code_runner_start(stile_code_runner self, stile_string code, stile_string name, stile_string input, stile_env env, stile_code_pending *out, stile_error *error);

stile_pollable stile_code_pending_subscribe(stile_code_pending self);

// What the code returned, as JSON.
bool stile_code_pending_take(stile_code_pending self, stile_string *out, stile_error *error);

typedef struct { bool some; stile_code_failure value; } stile_option_code_failure;

// What the code threw, if that is why `take` fails.
bool stile_code_pending_thrown(stile_code_pending self, stile_option_code_failure *out, stile_error *error);

typedef struct { stile_code_line *data; size_t len; } stile_list_code_line;

// What the code has logged since the last call: at most 500 lines in all, of 16,384 bytes together.
bool stile_code_pending_log(stile_code_pending self, stile_list_code_line *out, stile_error *error);

// The binding of this name, which must be of stile:capability/code.
bool stile_env_code(stile_env self, stile_string name, stile_code_runner *out, stile_error *error);

// Gives a binding of this name to what runs with this env. The handle is gone afterwards.
bool stile_env_put_code(stile_env self, stile_string name, stile_code_runner runner, stile_error *error);

enum {
  STILE_CONSOLE_LEVEL_TRACE,
  STILE_CONSOLE_LEVEL_DEBUG,
  STILE_CONSOLE_LEVEL_INFO,
  STILE_CONSOLE_LEVEL_WARN,
  STILE_CONSOLE_LEVEL_ERROR,
};
typedef uint8_t stile_console_level;

// A handle of stile:capability/console/console.
typedef struct { uint32_t handle; } stile_console;

// Gives the handle up. The end of a call drops all that are left.
void stile_console_drop(stile_console self);

// Text beyond the call's log limit is dropped, and the log says so.
void stile_console_log(stile_console self, stile_console_level level, stile_string message);

typedef struct { bool some; double value; } stile_option_double;

// Says how much of the call's work is done, of a total if that is known. Updates beyond ten a second may be dropped, and a message is
// one line of at most 200 bytes.
void stile_console_progress(stile_console self, double done, const double *total, stile_string message);

// The binding of this name, which must be of stile:capability/console.
bool stile_env_console(stile_env self, stile_string name, stile_console *out, stile_error *error);

// Gives a binding of this name to what runs with this env. The handle is gone afterwards.
bool stile_env_put_console(stile_env self, stile_string name, stile_console console, stile_error *error);

enum {
  STILE_HTTP_CONTENT_NONE,
  STILE_HTTP_CONTENT_TEXT,
  STILE_HTTP_CONTENT_BYTES,
  STILE_HTTP_CONTENT_BLOB,
};
typedef struct {
  uint8_t tag; // STILE_HTTP_CONTENT_NONE ...
  union {
    stile_string text;
    stile_bytes bytes;
    stile_blob blob;
  } value;
} stile_http_content;

enum {
  STILE_HTTP_REDIRECT_FOLLOW,
  STILE_HTTP_REDIRECT_MANUAL,
  STILE_HTTP_REDIRECT_ERROR,
};
typedef uint8_t stile_http_redirect;

typedef struct { stile_header *data; size_t len; } stile_list_header;

typedef struct { bool some; uint32_t value; } stile_option_u32;

typedef struct {
  stile_string method;
  stile_string url;
  stile_list_header headers;
  stile_http_content content;
  stile_http_redirect redirect;
  // Milliseconds for the whole exchange. The grant's limit still applies.
  stile_option_u32 timeout;
} stile_http_request;

typedef struct {
  uint16_t status;
  stile_string url;
  bool redirected;
  stile_list_header headers;
} stile_http_head;

typedef struct { bool some; uint16_t value; } stile_option_u16;

typedef struct {
  stile_string scheme;
  stile_string host;
  stile_option_u16 port;
  stile_list_string methods;
  stile_string path;
  stile_list_string headers;
} stile_http_rule;

// How far an exchange has progressed.
enum {
  STILE_HTTP_STAGE_HEAD,
  // More than this many bytes of the body have arrived, or the body has ended.
  STILE_HTTP_STAGE_BODY,
  // The whole body has arrived.
  STILE_HTTP_STAGE_WHOLE,
};
typedef struct {
  uint8_t tag; // STILE_HTTP_STAGE_HEAD ...
  union {
    uint64_t body;
  } value;
} stile_http_stage;

typedef struct {
  uint64_t offset;
  uint32_t len;
} stile_http_part;

// A handle of stile:capability/http/client.
typedef struct { uint32_t handle; } stile_http_client;

// Gives the handle up. The end of a call drops all that are left.
void stile_http_client_drop(stile_http_client self);

// A handle of stile:capability/http/exchange.
typedef struct { uint32_t handle; } stile_http_exchange;

// Gives the handle up. The end of a call drops all that are left.
void stile_http_exchange_drop(stile_http_exchange self);

// Starts a request and returns at once. A denial is returned here. A request has at most 100 headers, and at most 262,144
// bytes outside a blob.
bool stile_http_client_start(stile_http_client self, const stile_http_request *request, stile_http_exchange *out, stile_error *error);

typedef struct { stile_http_rule *data; size_t len; } stile_list_http_rule;

// A client that allows only what both this one and `rules` allow. At most 256 rules, with at most 32 methods and 64 headers each.
bool stile_http_client_narrow(stile_http_client self, stile_list_http_rule rules, stile_http_client *out, stile_error *error);

stile_list_http_rule stile_http_client_rules(stile_http_client self);

// Ready when the exchange has reached this stage or has failed.
stile_pollable stile_http_exchange_subscribe(stile_http_exchange self, const stile_http_stage *stage);

bool stile_http_exchange_head(stile_http_exchange self, stile_http_head *out, stile_error *error);

// The whole body.
bool stile_http_exchange_text(stile_http_exchange self, uint64_t max, stile_string *out, stile_error *error);

typedef struct { bool some; stile_http_part value; } stile_option_http_part;

// Without a part: the whole body, which can be taken once. With a part: the bytes that have arrived from its offset on, at
// most 262,144. There is at least one unless the body has ended.
bool stile_http_exchange_blob(stile_http_exchange self, const stile_http_part *part, stile_blob *out, stile_error *error);

// The binding of this name, which must be of stile:capability/http.
bool stile_env_http(stile_env self, stile_string name, stile_http_client *out, stile_error *error);

// Gives a binding of this name to what runs with this env. The handle is gone afterwards.
bool stile_env_put_http(stile_env self, stile_string name, stile_http_client client, stile_error *error);

typedef struct {
  stile_string key;
  stile_string value;
} stile_kv_entry;

typedef struct { stile_kv_entry *data; size_t len; } stile_list_kv_entry;

// `cursor` is set if more entries follow.
typedef struct {
  stile_list_kv_entry entries;
  stile_option_string cursor;
} stile_kv_page;

// A handle of stile:capability/kv/bucket.
typedef struct { uint32_t handle; } stile_kv_bucket;

// Gives the handle up. The end of a call drops all that are left.
void stile_kv_bucket_drop(stile_kv_bucket self);

bool stile_kv_bucket_get(stile_kv_bucket self, stile_string key, stile_option_string *out, stile_error *error);

bool stile_kv_bucket_set(stile_kv_bucket self, stile_string key, stile_string value, stile_error *error);

// Returns whether the key existed.
bool stile_kv_bucket_delete(stile_kv_bucket self, stile_string key, bool *out, stile_error *error);

// Entries whose key starts with `prefix`, in byte order, at most 1,000 a page.
bool stile_kv_bucket_list(stile_kv_bucket self, stile_string prefix, uint32_t limit, const stile_string *cursor, stile_kv_page *out, stile_error *error);

// Adds to a decimal integer, which is 0 when absent, and returns the sum.
bool stile_kv_bucket_increment(stile_kv_bucket self, stile_string key, int64_t delta, int64_t *out, stile_error *error);

// Sets `value` (none: deletes the key) if the current value is `expected` (none: no such key). Returns whether it did.
bool stile_kv_bucket_compare_and_set(stile_kv_bucket self, stile_string key, const stile_string *expected, const stile_string *value, bool *out, stile_error *error);

// The binding of this name, which must be of stile:capability/kv.
bool stile_env_kv(stile_env self, stile_string name, stile_kv_bucket *out, stile_error *error);

// Gives a binding of this name to what runs with this env. The handle is gone afterwards.
bool stile_env_put_kv(stile_env self, stile_string name, stile_kv_bucket bucket, stile_error *error);

// A handle of stile:capability/random/random.
typedef struct { uint32_t handle; } stile_random;

// Gives the handle up. The end of a call drops all that are left.
void stile_random_drop(stile_random self);

uint64_t stile_random_u64(stile_random self);

// At most 65,536 bytes a call.
bool stile_random_bytes(stile_random self, uint32_t length, stile_bytes *out, stile_error *error);

// The binding of this name, which must be of stile:capability/random.
bool stile_env_random(stile_env self, stile_string name, stile_random *out, stile_error *error);

// Gives a binding of this name to what runs with this env. The handle is gone afterwards.
bool stile_env_put_random(stile_env self, stile_string name, stile_random random, stile_error *error);

// `ready` and `running`: the run goes on. `asleep`: it waits. `done`, `failed` and `cancelled`: it has ended. `parked`: it goes on only when a
// person has it do so.
enum {
  STILE_RUNS_STATE_READY,
  STILE_RUNS_STATE_RUNNING,
  STILE_RUNS_STATE_ASLEEP,
  STILE_RUNS_STATE_DONE,
  STILE_RUNS_STATE_FAILED,
  STILE_RUNS_STATE_CANCELLED,
  STILE_RUNS_STATE_PARKED,
};
typedef uint8_t stile_runs_state;

typedef struct { bool some; uint64_t value; } stile_option_u64;

// `since` is when the run came into the state, and `wakes` when it goes on if it waits for a time: in milliseconds since
// 1970-01-01T00:00:00Z. `mailboxes` are those from which it waits for messages. `reason` says why it failed or is parked.
typedef struct {
  stile_runs_state state;
  uint64_t since;
  stile_option_u64 wakes;
  stile_list_string mailboxes;
  stile_option_string reason;
} stile_runs_status;

// The run of this call. If the call is not durable, `cancelled`, `stash` and `recover` fail with `unavailable`.
typedef struct { uint32_t handle; } stile_runs_control;

// Gives the handle up. The end of a call drops all that are left.
void stile_runs_control_drop(stile_runs_control self);

// Keeps the call from sleeping.
typedef struct { uint32_t handle; } stile_runs_awake;

// Gives the handle up. The end of a call drops all that are left.
void stile_runs_awake_drop(stile_runs_awake self);

// Ready once somebody has asked for the end of the run. From this call on, the run is not ended at once then, but has some time for
// its own end.
bool stile_runs_control_cancelled(stile_runs_control self, stile_pollable *out, stile_error *error);

// Keeps the call from sleeping until the handle is dropped.
stile_runs_awake stile_runs_control_keep_awake(stile_runs_control self);

// Keeps JSON of at most 64 KiB with the run, in place of what it kept before. Later attempts of the run have it too.
bool stile_runs_control_stash(stile_runs_control self, stile_string value, stile_error *error);

// What the run keeps. None if it keeps nothing.
bool stile_runs_control_recover(stile_runs_control self, stile_option_string *out, stile_error *error);

// Starts a tool of another extension as a run of its own, which outlives this call, and returns its id. Among the runs of one tool that this
// extension has started, a key finds the one that it started.
bool stile_runs_control_start(stile_runs_control self, stile_string tool, stile_string input, const stile_string *key, stile_string *out, stile_error *error);

// Ready once a run has ended that `start` returned.
bool stile_runs_control_ended(stile_runs_control self, stile_string run, stile_pollable *out, stile_error *error);

// Waits for the result of a run that `start` returned. If the tool failed, its error.
bool stile_runs_control_outcome(stile_runs_control self, stile_string run, stile_string *out, stile_error *error);

// Where a run is that `start` returned.
bool stile_runs_control_status(stile_runs_control self, stile_string run, stile_runs_status *out, stile_error *error);

// Delivers JSON of at most 64 KiB to a mailbox of a run that `start` returned. False if the mailbox has had a message with this key.
bool stile_runs_control_signal(stile_runs_control self, stile_string run, stile_string mailbox, stile_string data, const stile_string *key, bool *out, stile_error *error);

// Asks for the end of a run that `start` returned. Nothing happens if it has ended.
bool stile_runs_control_cancel(stile_runs_control self, stile_string run, stile_error *error);

// The binding of this name, which must be of stile:capability/runs.
bool stile_env_runs(stile_env self, stile_string name, stile_runs_control *out, stile_error *error);

// Gives a binding of this name to what runs with this env. The handle is gone afterwards.
bool stile_env_put_runs(stile_env self, stile_string name, stile_runs_control control, stile_error *error);

enum {
  STILE_WORKSPACE_KIND_FILE,
  STILE_WORKSPACE_KIND_DIRECTORY,
  STILE_WORKSPACE_KIND_LINK,
};
typedef uint8_t stile_workspace_kind;

typedef struct {
  stile_workspace_kind kind;
  // Bytes; 0 for directories and links.
  uint64_t size;
  // Milliseconds since 1970-01-01T00:00:00Z.
  uint64_t modified;
  // Permission bits, at most 0o777.
  uint32_t mode;
} stile_workspace_status;

typedef struct {
  stile_string name;
  stile_workspace_status status;
} stile_workspace_entry;

typedef struct { stile_workspace_entry *data; size_t len; } stile_list_workspace_entry;

// `cursor` is set if more entries follow.
typedef struct {
  stile_list_workspace_entry entries;
  stile_option_string cursor;
} stile_workspace_page;

// A file at one moment. There is no text above the size that was asked for, and for bytes that are not UTF-8. `digest` is as
// `blob.digest` has it.
typedef struct {
  stile_option_string text;
  stile_string digest;
  uint64_t size;
} stile_workspace_whole;

typedef struct {
  stile_string old;
  stile_string new;
} stile_workspace_replacement;

// `cursor` is set if there may be more paths, even after a page without any.
typedef struct {
  stile_list_string paths;
  stile_option_string cursor;
} stile_workspace_found;

typedef struct {
  // Globs: a file must match one of `include`, if there are any, and none of `exclude`; at most 32 each.
  stile_list_string include;
  stile_list_string exclude;
  // Lines to return before and after each match, at most 20.
  uint32_t context;
} stile_workspace_search;

typedef struct {
  stile_string path;
  // Both count from 1. `column` counts bytes.
  uint32_t line;
  uint32_t column;
  // The line without its end. For a line over 2,000 bytes, the part that contains the match.
  stile_string text;
  stile_list_string before;
  stile_list_string after;
} stile_workspace_match;

typedef struct { stile_workspace_match *data; size_t len; } stile_list_workspace_match;

typedef struct {
  stile_list_workspace_match matches;
  // Files of this page that were not searched completely: binary files, and files with a line over 16 KiB.
  uint32_t partial;
  // Set if there may be more matches, even after a page without any.
  stile_option_string cursor;
} stile_workspace_matches;

// Earlier content of a path; `modified` is when it was written.
typedef struct {
  uint64_t id;
  uint64_t size;
  uint64_t modified;
} stile_workspace_revision;

// `taken` is in milliseconds since 1970-01-01T00:00:00Z; `files` counts directories and links too.
typedef struct {
  uint64_t id;
  uint64_t taken;
  uint64_t files;
  uint64_t bytes;
} stile_workspace_snapshot;

// A handle of stile:capability/workspace/directory.
typedef struct { uint32_t handle; } stile_workspace_directory;

// Gives the handle up. The end of a call drops all that are left.
void stile_workspace_directory_drop(stile_workspace_directory self);

// The whole file as UTF-8 text.
bool stile_workspace_directory_read(stile_workspace_directory self, stile_string path, stile_string *out, stile_error *error);

// The file with its digest, and with its text if it has at most `max` bytes.
bool stile_workspace_directory_read_with_digest(stile_workspace_directory self, stile_string path, uint64_t max, stile_workspace_whole *out, stile_error *error);

// Lines `from` to `to`, counted from 1, both included. Without `to`: up to the end.
bool stile_workspace_directory_read_lines(stile_workspace_directory self, stile_string path, uint32_t from, const uint32_t *to, stile_string *out, stile_error *error);

// At most 262,144 bytes a call; fewer at the end of the file.
bool stile_workspace_directory_read_bytes(stile_workspace_directory self, stile_string path, uint64_t offset, uint32_t length, stile_bytes *out, stile_error *error);

bool stile_workspace_directory_read_blob(stile_workspace_directory self, stile_string path, stile_blob *out, stile_error *error);

// Creates or replaces the file, and creates missing parent directories.
bool stile_workspace_directory_write(stile_workspace_directory self, stile_string path, stile_string text, stile_error *error);

// At most 262,144 bytes a call.
bool stile_workspace_directory_write_bytes(stile_workspace_directory self, stile_string path, stile_bytes bytes, stile_error *error);

bool stile_workspace_directory_write_blob(stile_workspace_directory self, stile_string path, stile_blob source, stile_error *error);

// Writes the text if the content of the file has this digest, as `blob.digest` has it, or without one, if there is no file.
// Otherwise fails with `conflict`. Returns the digest of the text.
bool stile_workspace_directory_replace(stile_workspace_directory self, stile_string path, stile_string text, const stile_string *digest, stile_string *out, stile_error *error);

bool stile_workspace_directory_append(stile_workspace_directory self, stile_string path, stile_string text, stile_error *error);

// At most 262,144 bytes a call.
bool stile_workspace_directory_append_bytes(stile_workspace_directory self, stile_string path, stile_bytes bytes, stile_error *error);

typedef struct { stile_workspace_replacement *data; size_t len; } stile_list_workspace_replacement;

// Applies literal replacements, all or none. Each `old` must occur exactly once in the file as it is now. At most 1,000
// replacements, with at most 512 KiB of `old` in total. Fails with `conflict` if others keep changing the file meanwhile.
bool stile_workspace_directory_edit(stile_workspace_directory self, stile_string path, stile_list_workspace_replacement replacements, stile_error *error);

// Entries of one directory in byte order of names, at most 1,000 a page.
bool stile_workspace_directory_list(stile_workspace_directory self, stile_string path, uint32_t limit, const stile_string *cursor, stile_workspace_page *out, stile_error *error);

// Paths below this directory that match a glob, at most 1,000 a page. `*` and `?` match no slash, and `**` between slashes
// matches any number of directories. `[a-z]` and `{a,b}` match alternatives. A glob without a slash matches the last name.
// Links are not followed. Each call searches for a limited time: repeat it with the cursor until there is none.
bool stile_workspace_directory_find(stile_workspace_directory self, stile_string glob, uint32_t limit, const stile_string *cursor, stile_workspace_found *out, stile_error *error);

// Lines that match a regular expression (RE2), at most 1,000 a page. Files come in the order of `find`. Repeat the call
// with the cursor, the same pattern and the same search until there is no cursor.
bool stile_workspace_directory_grep(stile_workspace_directory self, stile_string pattern, const stile_workspace_search *search, uint32_t limit, const stile_string *cursor, stile_workspace_matches *out, stile_error *error);

// A unified diff of two text files of at most 1 MiB; empty when they are the same.
bool stile_workspace_directory_diff(stile_workspace_directory self, stile_string before, stile_string after, stile_string *out, stile_error *error);

// A diff of an earlier content of the path and what it holds now.
bool stile_workspace_directory_diff_revision(stile_workspace_directory self, stile_string path, uint64_t revision, stile_string *out, stile_error *error);

// For a link: the status of the link itself, not of its target.
bool stile_workspace_directory_stat(stile_workspace_directory self, stile_string path, stile_workspace_status *out, stile_error *error);

bool stile_workspace_directory_set_mode(stile_workspace_directory self, stile_string path, uint32_t mode, stile_error *error);

// `target` is relative to the link's directory. A target outside the handle's directory is denied, now and when it is followed.
bool stile_workspace_directory_make_link(stile_workspace_directory self, stile_string path, stile_string target, stile_error *error);

bool stile_workspace_directory_read_link(stile_workspace_directory self, stile_string path, stile_string *out, stile_error *error);

// Creates the directory and missing parent directories. An existing directory is left unchanged.
bool stile_workspace_directory_make_directory(stile_workspace_directory self, stile_string path, stile_error *error);

bool stile_workspace_directory_move(stile_workspace_directory self, stile_string source, stile_string target, stile_error *error);

bool stile_workspace_directory_copy(stile_workspace_directory self, stile_string source, stile_string target, stile_error *error);

// `recursive` removes a directory with its contents.
bool stile_workspace_directory_remove(stile_workspace_directory self, stile_string path, bool recursive, stile_error *error);

typedef struct { stile_workspace_revision *data; size_t len; } stile_list_workspace_revision;

// What the path held before it was replaced, removed or moved away, newest first. On a directory on disk, this,
// `diff-revision` and the functions below up to `remove-snapshot` fail with `unavailable`.
bool stile_workspace_directory_history(stile_workspace_directory self, stile_string path, stile_list_workspace_revision *out, stile_error *error);

bool stile_workspace_directory_read_revision(stile_workspace_directory self, stile_string path, uint64_t revision, stile_blob *out, stile_error *error);

// Writes earlier content back to the path.
bool stile_workspace_directory_restore(stile_workspace_directory self, stile_string path, uint64_t revision, stile_error *error);

// Takes a snapshot of this directory and returns its id.
bool stile_workspace_directory_snapshot(stile_workspace_directory self, uint64_t *out, stile_error *error);

typedef struct { stile_workspace_snapshot *data; size_t len; } stile_list_workspace_snapshot;

// Newest first.
bool stile_workspace_directory_snapshots(stile_workspace_directory self, stile_list_workspace_snapshot *out, stile_error *error);

// Restores this directory to the snapshot. Later content is removed, but stays in the history.
bool stile_workspace_directory_restore_snapshot(stile_workspace_directory self, uint64_t id, stile_error *error);

bool stile_workspace_directory_remove_snapshot(stile_workspace_directory self, uint64_t id, stile_error *error);

// A handle for a directory below this one.
bool stile_workspace_directory_subdirectory(stile_workspace_directory self, stile_string path, stile_workspace_directory *out, stile_error *error);

// The same directory without the right to change it.
bool stile_workspace_directory_read_only(stile_workspace_directory self, stile_workspace_directory *out, stile_error *error);

// The binding of this name, which must be of stile:capability/workspace.
bool stile_env_workspace(stile_env self, stile_string name, stile_workspace_directory *out, stile_error *error);

// Gives a binding of this name to what runs with this env. The handle is gone afterwards.
bool stile_env_put_workspace(stile_env self, stile_string name, stile_workspace_directory directory, stile_error *error);

enum {
  STILE_SANDBOX_INPUT_NONE,
  STILE_SANDBOX_INPUT_TEXT,
  STILE_SANDBOX_INPUT_BLOB,
};
typedef struct {
  uint8_t tag; // STILE_SANDBOX_INPUT_NONE ...
  union {
    stile_string text;
    stile_blob blob;
  } value;
} stile_sandbox_input;

typedef struct {
  stile_string name;
  stile_string value;
} stile_sandbox_variable;

typedef struct { stile_sandbox_variable *data; size_t len; } stile_list_sandbox_variable;

typedef struct {
  // The program and its arguments: at most 1,000, with at most 131,072 bytes together.
  stile_list_string argv;
  // A folder, relative to /work. "" is /work itself.
  stile_string folder;
  // Further variables, at most 100.
  stile_list_sandbox_variable env;
  stile_sandbox_input stdin;
  // Milliseconds. The grant's limit still applies.
  stile_option_u32 timeout;
} stile_sandbox_command;

enum {
  STILE_SANDBOX_STREAM_STDOUT,
  STILE_SANDBOX_STREAM_STDERR,
};
typedef uint8_t stile_sandbox_stream;

typedef struct {
  // Where the part is in all that the process wrote. More than was asked for if what lies between was dropped.
  uint64_t offset;
  stile_sandbox_stream stream;
  stile_bytes bytes;
} stile_sandbox_part;

// Why a process ended: by itself, after its timeout, because the sandbox had no memory left, or because it was stopped.
enum {
  STILE_SANDBOX_ENDING_EXITED,
  STILE_SANDBOX_ENDING_TIMEOUT,
  STILE_SANDBOX_ENDING_MEMORY,
  STILE_SANDBOX_ENDING_STOPPED,
};
typedef uint8_t stile_sandbox_ending;

typedef struct {
  // 128 plus the number of the signal, if one ended it.
  uint32_t code;
  stile_sandbox_ending ending;
  // Bytes of output that are no longer there. The last ones are kept.
  uint64_t dropped;
} stile_sandbox_exit;

enum {
  // More than this many bytes of output have been written, or the process has ended.
  STILE_SANDBOX_STAGE_OUTPUT,
  STILE_SANDBOX_STAGE_ENDED,
};
typedef struct {
  uint8_t tag; // STILE_SANDBOX_STAGE_OUTPUT ...
  union {
    uint64_t output;
  } value;
} stile_sandbox_stage;

typedef struct {
  stile_string path;
  stile_string reason;
} stile_sandbox_note;

typedef struct { stile_sandbox_note *data; size_t len; } stile_list_sandbox_note;

// What was done to the target of a copy. Each list has at most 1,000 entries, and `omitted` counts those that are left out.
typedef struct {
  stile_list_string added;
  stile_list_string changed;
  stile_list_string removed;
  // Paths that changed on both sides since the last copy. The file of the directory stays, and that of the sandbox is kept
  // under the name with ".sandbox" at its end.
  stile_list_sandbox_note conflicts;
  // What was not copied, and why.
  stile_list_sandbox_note skipped;
  uint32_t omitted;
} stile_sandbox_changes;

// A handle of stile:capability/sandbox/container.
typedef struct { uint32_t handle; } stile_sandbox_container;

// Gives the handle up. The end of a call drops all that are left.
void stile_sandbox_container_drop(stile_sandbox_container self);

// A handle of stile:capability/sandbox/process.
typedef struct { uint32_t handle; } stile_sandbox_process;

// Gives the handle up. The end of a call drops all that are left.
void stile_sandbox_process_drop(stile_sandbox_process self);

// A handle of stile:capability/sandbox/transfer.
typedef struct { uint32_t handle; } stile_sandbox_transfer;

// Gives the handle up. The end of a call drops all that are left.
void stile_sandbox_transfer_drop(stile_sandbox_transfer self);

// Starts a process and returns at once. `take` of the process reports what went wrong later. At most 16 run at a time.
bool stile_sandbox_container_start(stile_sandbox_container self, const stile_sandbox_command *command, stile_sandbox_process *out, stile_error *error);

// Copies what changed in the directory since the last copy to a folder of the sandbox, relative to /work.
bool stile_sandbox_container_push(stile_sandbox_container self, stile_workspace_directory directory, stile_string to, stile_sandbox_transfer *out, stile_error *error);

// Copies what changed in a folder of the sandbox since the last copy to the directory. Processes stand still meanwhile.
bool stile_sandbox_container_pull(stile_sandbox_container self, stile_workspace_directory directory, stile_string from, stile_sandbox_transfer *out, stile_error *error);

// The limits that hold, and how that was found out.
bool stile_sandbox_container_limits(stile_sandbox_container self, stile_list_sandbox_note *out, stile_error *error);

stile_pollable stile_sandbox_process_subscribe(stile_sandbox_process self, const stile_sandbox_stage *stage);

typedef struct { bool some; stile_sandbox_part value; } stile_option_sandbox_part;

// The output from an offset on, at most 262,144 bytes of one stream. None if there is no more for now.
bool stile_sandbox_process_read(stile_sandbox_process self, uint64_t offset, stile_option_sandbox_part *out, stile_error *error);

// Waits until the process and all that it started have ended.
bool stile_sandbox_process_take(stile_sandbox_process self, stile_sandbox_exit *out, stile_error *error);

// Ends the process and all that it started.
void stile_sandbox_process_stop(stile_sandbox_process self);

stile_pollable stile_sandbox_transfer_subscribe(stile_sandbox_transfer self);

bool stile_sandbox_transfer_take(stile_sandbox_transfer self, stile_sandbox_changes *out, stile_error *error);

// The binding of this name, which must be of stile:capability/sandbox.
bool stile_env_sandbox(stile_env self, stile_string name, stile_sandbox_container *out, stile_error *error);

// Gives a binding of this name to what runs with this env. The handle is gone afterwards.
bool stile_env_put_sandbox(stile_env self, stile_string name, stile_sandbox_container container, stile_error *error);

// `data` is JSON. It comes from outside and is not to be trusted; `from` is where, as the host says. `received` is in milliseconds since
// 1970-01-01T00:00:00Z.
typedef struct {
  stile_string data;
  stile_string from;
  uint64_t received;
} stile_signals_message;

// A handle of stile:capability/signals/mailboxes.
typedef struct { uint32_t handle; } stile_signals_mailboxes;

// Gives the handle up. The end of a call drops all that are left.
void stile_signals_mailboxes_drop(stile_signals_mailboxes self);

// A handle of stile:capability/signals/pending.
typedef struct { uint32_t handle; } stile_signals_pending;

// Gives the handle up. The end of a call drops all that are left.
void stile_signals_pending_drop(stile_signals_pending self);

// Waits for a message in a mailbox, for at most this long. Fails with `unavailable` if the call is not durable.
bool stile_signals_mailboxes_receive(stile_signals_mailboxes self, stile_string mailbox, const uint64_t *milliseconds, stile_signals_pending *out, stile_error *error);

// An address to which anybody who has it can post messages for a mailbox, until the call ends. The same mailbox has the same address.
bool stile_signals_mailboxes_url(stile_signals_mailboxes self, stile_string mailbox, stile_string *out, stile_error *error);

// Ready once the mailbox has a message, or the time is over.
stile_pollable stile_signals_pending_subscribe(stile_signals_pending self);

typedef struct { bool some; stile_signals_message value; } stile_option_signals_message;

// The oldest message of the mailbox, which nobody else gets then. None if there is none. Fails with `timed-out` if there is none
// and the time is over.
bool stile_signals_pending_take(stile_signals_pending self, stile_option_signals_message *out, stile_error *error);

// The binding of this name, which must be of stile:capability/signals.
bool stile_env_signals(stile_env self, stile_string name, stile_signals_mailboxes *out, stile_error *error);

// Gives a binding of this name to what runs with this env. The handle is gone afterwards.
bool stile_env_put_signals(stile_env self, stile_string name, stile_signals_mailboxes mailboxes, stile_error *error);

typedef struct {
  stile_string name;
  stile_string description;
  stile_string input_schema;
} stile_tools_description;

// A handle of stile:capability/tools/toolbox.
typedef struct { uint32_t handle; } stile_tools_toolbox;

// Gives the handle up. The end of a call drops all that are left.
void stile_tools_toolbox_drop(stile_tools_toolbox self);

// A handle of stile:capability/tools/pending.
typedef struct { uint32_t handle; } stile_tools_pending;

// Gives the handle up. The end of a call drops all that are left.
void stile_tools_pending_drop(stile_tools_pending self);

typedef struct { stile_tools_description *data; size_t len; } stile_list_tools_description;

stile_list_tools_description stile_tools_toolbox_search(stile_tools_toolbox self, stile_string query, uint32_t limit);

stile_string stile_tools_toolbox_describe(stile_tools_toolbox self, stile_list_string names);

bool stile_tools_toolbox_start(stile_tools_toolbox self, stile_string tool, stile_string input, stile_env env, stile_tools_pending *out, stile_error *error);

stile_pollable stile_tools_pending_subscribe(stile_tools_pending self);

bool stile_tools_pending_take(stile_tools_pending self, stile_string *out, stile_error *error);

// The binding of this name, which must be of stile:capability/tools.
bool stile_env_tools(stile_env self, stile_string name, stile_tools_toolbox *out, stile_error *error);

// Gives a binding of this name to what runs with this env. The handle is gone afterwards.
bool stile_env_put_tools(stile_env self, stile_string name, stile_tools_toolbox toolbox, stile_error *error);

typedef struct {
  bool read_only;
  bool destructive;
  bool idempotent;
  bool open_world;
} stile_tool_annotations;

typedef struct {
  stile_string name;
  stile_string description;
  // JSON Schema 2020-12, as JSON text.
  stile_string input_schema;
  stile_option_string output_schema;
  stile_tool_annotations annotations;
} stile_tool_definition;

typedef struct {
  stile_string path;
  stile_string message;
} stile_tool_problem;

typedef struct {
  stile_string name;
  stile_string message;
  stile_string stack;
} stile_tool_failure;

typedef struct { stile_tool_problem *data; size_t len; } stile_list_tool_problem;

enum {
  STILE_TOOL_ERROR_UNKNOWN_TOOL,
  // At most 20 problems.
  STILE_TOOL_ERROR_INVALID_INPUT,
  STILE_TOOL_ERROR_DENIED,
  // The guest's own runtime reached a limit: memory, stack, string length, or a promise that nothing can settle. The text names it.
  STILE_TOOL_ERROR_EXHAUSTED,
  STILE_TOOL_ERROR_FAILED,
};
typedef struct {
  uint8_t tag; // STILE_TOOL_ERROR_UNKNOWN_TOOL ...
  union {
    stile_string unknown_tool;
    stile_list_tool_problem invalid_input;
    stile_denial denied;
    stile_string exhausted;
    stile_tool_failure failed;
  } value;
} stile_tool_error;

typedef struct { stile_tool_definition *data; size_t len; } stile_list_tool_definition;

// End of what is generated.

// Memory, aligned to 16 bytes and zero. It is never null.
void *stile_alloc(size_t size);

// Memory for count values of a type.
#define STILE_NEW(type, count) ((type *)stile_alloc_array((count), sizeof(type)))
void *stile_alloc_array(size_t count, size_t size);

// A list, as a parameter or a field: STILE_LIST(stile_list_string, stile_text("*.md"), stile_text("*.txt"))
#define STILE_LIST(type, ...) ((type){STILE_ARRAY(type, __VA_ARGS__), sizeof(STILE_ARRAY(type, __VA_ARGS__)) / sizeof(*((type *)0)->data)})
#define STILE_ARRAY(type, ...) ((__typeof__(*((type *)0)->data)[]){__VA_ARGS__})

// Texts.

// The text of a string of C, which it does not copy.
stile_string stile_text(const char *text);
// A copy with a zero at its end. It ends early if the text contains a zero.
char *stile_c_string(stile_string text);
bool stile_equal(stile_string a, stile_string b);
bool stile_starts_with(stile_string text, stile_string start);
bool stile_ends_with(stile_string text, stile_string end);
bool stile_is_utf8(stile_string text);
// The texts one after the other: stile_concat(title, stile_text(".md"))
#define stile_concat(...) stile_concat_list(STILE_LIST(stile_list_string, __VA_ARGS__))
stile_string stile_concat_list(stile_list_string texts);

// A text that grows. It begins as {0}.
typedef struct { char *data; size_t len, capacity; } stile_buffer;

void stile_add(stile_buffer *buffer, stile_string text);
void stile_add_int(stile_buffer *buffer, int64_t number);
// What is in it now, which it does not copy.
stile_string stile_built(stile_buffer buffer);

// JSON that is read. Nothing is copied, apart from texts with escapes.

// JSON written as it is, such as a schema: STILE_JSON({"type": "object"}) is a string of C.
#define STILE_JSON(...) #__VA_ARGS__

// A value: a part of a text that stile_json_parse has checked. One that is not there is {0}.
typedef struct { stile_string text; } stile_json;

typedef enum { STILE_JSON_ABSENT, STILE_JSON_NULL, STILE_JSON_BOOL, STILE_JSON_NUMBER, STILE_JSON_STRING, STILE_JSON_ARRAY, STILE_JSON_OBJECT } stile_json_type;

// How deep arrays and objects may lie in each other.
#define STILE_JSON_DEPTH 256

// Whether the text is JSON (RFC 8259, UTF-8), and its value.
bool stile_json_parse(stile_string text, stile_json *out);
stile_json_type stile_json_type_of(stile_json value);

// The member of an object, the last if several have the name. It is absent if there is none, or no object.
stile_json stile_get(stile_json object, const char *name);

// What a value is, if it is that: an integer is a number that fits, however it is written.
bool stile_json_string(stile_json value, stile_string *out);
bool stile_json_int(stile_json value, int64_t *out);
bool stile_json_number(stile_json value, double *out);
bool stile_json_bool(stile_json value, bool *out);

// Members of an object, or otherwise if there is none, or of another type.
stile_string stile_get_string(stile_json object, const char *name, stile_string otherwise);
int64_t stile_get_int(stile_json object, const char *name, int64_t otherwise);
double stile_get_number(stile_json object, const char *name, double otherwise);
bool stile_get_bool(stile_json object, const char *name, bool otherwise);

// The elements of an array, or the members of an object: for (stile_json_items i = stile_items(v); stile_next(&i);) use i.value and
// i.name. There are none of another value.
typedef struct {
  stile_string name; // of a member
  stile_json value;
  const char *at, *end;
  bool object;
} stile_json_items;

stile_json_items stile_items(stile_json value);
bool stile_next(stile_json_items *items);

// JSON that is written. Commas come by themselves:
//
//     stile_begin(&out, '{'), stile_put_name(&out, "titles"), stile_begin(&out, '[');
//     stile_put_string(&out, title);
//     stile_end(&out, ']'), stile_end(&out, '}');
void stile_begin(stile_buffer *out, char bracket);
void stile_end(stile_buffer *out, char bracket);
void stile_put_name(stile_buffer *out, const char *name);
void stile_put_name_string(stile_buffer *out, stile_string name);
// Bytes that are not UTF-8 become U+FFFD.
void stile_put_string(stile_buffer *out, stile_string text);
void stile_put_int(stile_buffer *out, int64_t number);
// What is no number becomes null.
void stile_put_number(stile_buffer *out, double number);
void stile_put_bool(stile_buffer *out, bool value);
void stile_put_null(stile_buffer *out);
// A value as it is, null if it is absent.
void stile_put_json(stile_buffer *out, stile_json value);

// Tools.

// What a tool returns: JSON, or why it failed.
typedef struct {
  bool failed;
  union {
    stile_string json;
    stile_tool_error error;
  } value;
} stile_result;

stile_result stile_return(stile_buffer json);
// The call failed because a capability did. A denial stays a denial.
stile_result stile_refused(stile_error error);
// The call failed with a message.
stile_result stile_failed(stile_string message);
// The text of an error of a capability.
stile_string stile_error_text(stile_error error);

typedef struct {
  const char *name, *description;
  // JSON Schema. The host refuses input that does not fit before the tool sees it. Null: any object.
  const char *input;
  // JSON Schema of the result, if it is not null.
  const char *output;
  stile_tool_annotations annotations;
  stile_result (*run)(stile_env env, stile_json input);
} stile_tool;

// The tools of the extension. The one after the last is {0}.
extern const stile_tool stile_tools[];

// Makes a request with a text as its body, follows redirects that the grant allows, and reads the response's body of at most 8 MiB.
// stile_http_client_start offers more.
bool stile_http_send(stile_http_client client, stile_string method, stile_string url, stile_string body, uint16_t *status, stile_string *text, stile_error *error);

#endif
