// The C SDK of Stile: see stile.h.
#include "stile.h"

// Functions that compilers call. A C library that is linked has its own.

#ifdef __wasm__
__attribute__((weak, no_builtin("memcpy"))) void *memcpy(void *restrict to, const void *restrict from, size_t n) {
#ifdef __wasm_bulk_memory__
  return __builtin_memcpy(to, from, n);
#else
  for (size_t k = 0; k < n; k++) ((char *)to)[k] = ((const char *)from)[k];
  return to;
#endif
}

__attribute__((weak, no_builtin("memset"))) void *memset(void *to, int byte, size_t n) {
#ifdef __wasm_bulk_memory__
  return __builtin_memset(to, byte, n);
#else
  for (size_t k = 0; k < n; k++) ((char *)to)[k] = (char)byte;
  return to;
#endif
}

__attribute__((weak, no_builtin("memmove"))) void *memmove(void *to, const void *from, size_t n) {
#ifdef __wasm_bulk_memory__
  return __builtin_memmove(to, from, n);
#else
  char *t = to;
  const char *f = from;
  if (t < f) {
    for (size_t k = 0; k < n; k++) t[k] = f[k];
  } else {
    while (n--) t[n] = f[n];
  }
  return to;
#endif
}

__attribute__((weak, no_builtin("memcmp", "bcmp"))) int memcmp(const void *a, const void *b, size_t n) {
  const unsigned char *x = a, *y = b;
  for (; n; n--, x++, y++) {
    if (*x != *y) return *x - *y;
  }
  return 0;
}

__attribute__((weak, no_builtin("strlen"))) size_t strlen(const char *text) {
  size_t n = 0;
  while (text[n]) n++;
  return n;
}
#else
#include <string.h>
#endif

// Memory: the first bytes are part of the module, and the rest comes in chunks that no other allocator has.

enum { FIRST = 32 << 10, CHUNK = 64 << 10, ALIGN = 16 };

static _Alignas(ALIGN) char first[FIRST];
static char *heap = first, *heap_end = first + FIRST;

#ifdef __wasm__
static void more(size_t size) {
  size_t pages = (size + CHUNK - 1) / CHUNK, at = __builtin_wasm_memory_grow(0, pages);
  if (at == SIZE_MAX) __builtin_trap(); // the host says that the memory is used up
  char *chunk = (char *)(at * CHUNK);
  if (chunk != heap_end) heap = chunk;
  heap_end = chunk + pages * CHUNK;
}
#else
#include <stdlib.h>
static void more(size_t size) {
  heap = calloc(1, size + ALIGN);
  if (!heap) __builtin_trap();
  heap += -(uintptr_t)heap % ALIGN;
  heap_end = heap + size;
}
#endif

void *stile_alloc(size_t size) {
  if (size > SIZE_MAX / 2) __builtin_trap();
  size = (size + ALIGN - 1) / ALIGN * ALIGN;
  if (size > (size_t)(heap_end - heap)) more(size);
  char *p = heap;
  heap += size;
  return p;
}

void *stile_alloc_array(size_t count, size_t size) {
  size_t all;
  if (__builtin_mul_overflow(count, size, &all)) __builtin_trap();
  return stile_alloc(all);
}

// Grows memory of an allocation, in place if it is the last one.
static char *grow(char *old, size_t old_size, size_t size) {
  char *limit = old + (old_size + ALIGN - 1) / ALIGN * ALIGN;
  if (old && limit == heap && size <= (size_t)(heap_end - old)) {
    heap = old + (size + ALIGN - 1) / ALIGN * ALIGN;
    return old;
  }
  char *p = stile_alloc(size);
  if (old_size) memcpy(p, old, old_size);
  return p;
}

// Texts.

stile_string stile_text(const char *text) { return (stile_string){text, strlen(text)}; }

char *stile_c_string(stile_string text) {
  char *p = stile_alloc(text.len + 1);
  if (text.len) memcpy(p, text.data, text.len);
  return p;
}

bool stile_equal(stile_string a, stile_string b) { return a.len == b.len && (!a.len || !memcmp(a.data, b.data, a.len)); }

bool stile_starts_with(stile_string text, stile_string start) {
  return text.len >= start.len && stile_equal((stile_string){text.data, start.len}, start);
}

bool stile_ends_with(stile_string text, stile_string end) {
  return text.len >= end.len && stile_equal((stile_string){text.data + (text.len - end.len), end.len}, end);
}

// The length of the character at p, which is before end: 0 if it is not UTF-8.
static size_t character(const char *p, const char *end) {
  const unsigned char *c = (const unsigned char *)p;
  size_t n = c[0] < 0x80 ? 1 : c[0] < 0xc2 ? 0 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : c[0] < 0xf5 ? 4 : 0;
  if (n > (size_t)(end - p)) return 0;
  for (size_t k = 1; k < n; k++) {
    if ((c[k] & 0xc0) != 0x80) return 0;
  }
  bool wrong = (c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xed && c[1] > 0x9f) || (c[0] == 0xf0 && c[1] < 0x90) || (c[0] == 0xf4 && c[1] > 0x8f);
  return wrong ? 0 : n;
}

bool stile_is_utf8(stile_string text) {
  for (size_t k = 0, n; k < text.len; k += n) {
    if (!(n = character(text.data + k, text.data + text.len))) return false;
  }
  return true;
}

void stile_add(stile_buffer *b, stile_string text) {
  size_t len;
  if (__builtin_add_overflow(b->len, text.len, &len)) __builtin_trap();
  if (len > b->capacity) {
    size_t capacity = len < SIZE_MAX / 4 ? 2 * len : len;
    b->data = grow(b->data, b->capacity, capacity);
    b->capacity = capacity;
  }
  if (text.len) memmove(b->data + b->len, text.data, text.len);
  b->len = len;
}

static void add_char(stile_buffer *b, char c) { stile_add(b, (stile_string){&c, 1}); }

void stile_add_int(stile_buffer *b, int64_t number) {
  char digits[20];
  size_t at = sizeof digits;
  uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
  do digits[--at] = (char)('0' + rest % 10);
  while (rest /= 10);
  if (number < 0) digits[--at] = '-';
  stile_add(b, (stile_string){digits + at, sizeof digits - at});
}

stile_string stile_built(stile_buffer b) { return (stile_string){b.data, b.len}; }

stile_string stile_concat_list(stile_list_string texts) {
  stile_buffer b = {0};
  for (size_t k = 0; k < texts.len; k++) stile_add(&b, texts.data[k]);
  return stile_built(b);
}

// Reading JSON. A text is checked once, as a whole, without recursion. Then a value is a part of it, which is read where it is.
// Every function stays between p and end, whatever is there.

static const char *space(const char *p, const char *end) {
  while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')) p++;
  return p;
}

static bool digit(const char *p, const char *end) { return p < end && *p >= '0' && *p <= '9'; }

static int hex(char c) {
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// The number of the four hexadecimal digits at p: -1 if they are not there.
static int32_t hex4(const char *p, const char *end) {
  int32_t all = 0;
  if (end - p < 4) return -1;
  for (int k = 0; k < 4; k++) {
    int h = hex(p[k]);
    if (h < 0) return -1;
    all = all * 16 + h;
  }
  return all;
}

// The functions check_... return where what they check ends, or null if it is not there.

static const char *check_string(const char *p, const char *end) {
  if (p == end || *p++ != '"') return NULL;
  while (p < end) {
    if (*p == '"') return p + 1;
    if (*p == '\\') {
      if (++p == end) return NULL;
      switch (*p++) {
      case '"': case '\\': case '/': case 'b': case 'f': case 'n': case 'r': case 't': break;
      case 'u':
        if (hex4(p, end) < 0) return NULL;
        p += 4;
        break;
      default: return NULL;
      }
      continue;
    }
    size_t n = (unsigned char)*p < 0x20 ? 0 : character(p, end);
    if (!n) return NULL;
    p += n;
  }
  return NULL;
}

static const char *check_number(const char *p, const char *end) {
  if (p < end && *p == '-') p++;
  if (!digit(p, end)) return NULL;
  if (*p == '0') p++;
  else while (digit(p, end)) p++;
  if (p < end && *p == '.') {
    if (!digit(++p, end)) return NULL;
    while (digit(p, end)) p++;
  }
  if (p < end && (*p == 'e' || *p == 'E')) {
    p++;
    if (p < end && (*p == '+' || *p == '-')) p++;
    if (!digit(p, end)) return NULL;
    while (digit(p, end)) p++;
  }
  return p;
}

static const char *check_word(const char *p, const char *end, const char *word) {
  stile_string w = stile_text(word);
  return stile_starts_with((stile_string){p, (size_t)(end - p)}, w) ? p + w.len : NULL;
}

static const char *check_scalar(const char *p, const char *end) {
  switch (p < end ? *p : 0) {
  case '"': return check_string(p, end);
  case 't': return check_word(p, end, "true");
  case 'f': return check_word(p, end, "false");
  case 'n': return check_word(p, end, "null");
  default: return check_number(p, end);
  }
}

// The value of a member begins after its name and colon.
static const char *check_name(const char *p, const char *end) {
  p = check_string(space(p, end), end);
  if (!p) return NULL;
  p = space(p, end);
  return p < end && *p == ':' ? p + 1 : NULL;
}

static const char *check(const char *p, const char *end) {
  char closing[STILE_JSON_DEPTH];
  int depth = 0;
  for (;;) { // a value is next
    p = space(p, end);
    if (p < end && (*p == '{' || *p == '[')) {
      if (depth == STILE_JSON_DEPTH) return NULL;
      closing[depth++] = *p == '{' ? '}' : ']';
      p = space(p + 1, end);
      if (p == end || *p != closing[depth - 1]) { // it is not empty
        if (closing[depth - 1] == '}' && !(p = check_name(p, end))) return NULL;
        continue;
      }
      p++, depth--;
    } else if (!(p = check_scalar(p, end))) {
      return NULL;
    }
    for (; depth; depth--) { // a value has ended
      p = space(p, end);
      if (p == end) return NULL;
      char c = *p++;
      if (c == ',') {
        if (closing[depth - 1] == '}' && !(p = check_name(p, end))) return NULL;
        break;
      }
      if (c != closing[depth - 1]) return NULL;
    }
    if (!depth) return p;
  }
}

bool stile_json_parse(stile_string text, stile_json *out) {
  const char *start = text.data, *limit = text.data + text.len;
  const char *after = text.len ? check(start, limit) : NULL;
  if (!after || space(after, limit) != limit) return false;
  start = space(start, limit);
  out->text = (stile_string){start, (size_t)(after - start)};
  return true;
}

// Where the string at p ends.
static const char *skip_string(const char *p, const char *end) {
  for (p++; p < end && *p != '"'; p++) {
    if (*p == '\\' && p + 1 < end) p++;
  }
  return p < end ? p + 1 : end;
}

// Where the value at p ends, which was checked.
static const char *skip(const char *p, const char *end) {
  size_t depth = 0;
  while (p < end) {
    switch (*p) {
    case '"': p = skip_string(p, end); break;
    case '{': case '[': p++, depth++; break;
    case '}': case ']':
      if (!depth) return p;
      p++, depth--;
      break;
    default:
      while (p < end && !(*p == ',' || *p == '}' || *p == ']' || *p == '{' || *p == '[' || *p == '"')) p++;
    }
    if (!depth) return p;
    while (p < end && *p == ',') p++;
  }
  return end;
}

stile_json_type stile_json_type_of(stile_json v) {
  if (!v.text.len) return STILE_JSON_ABSENT;
  switch (v.text.data[0]) {
  case 'n': return STILE_JSON_NULL;
  case 't': case 'f': return STILE_JSON_BOOL;
  case '"': return STILE_JSON_STRING;
  case '[': return STILE_JSON_ARRAY;
  case '{': return STILE_JSON_OBJECT;
  default: return STILE_JSON_NUMBER;
  }
}

// The number of the escape at p, after the backslash, and in *p where it ends. Half of a pair of surrogates is U+FFFD.
static uint32_t escaped(const char **p, const char *end) {
  char c = *(*p)++;
  switch (c) {
  case 'b': return '\b';
  case 'f': return '\f';
  case 'n': return '\n';
  case 'r': return '\r';
  case 't': return '\t';
  case 'u': break;
  default: return (unsigned char)c;
  }
  int32_t one = hex4(*p, end);
  if (one < 0) return 0xfffd;
  *p += 4;
  if (one < 0xd800 || one > 0xdfff) return (uint32_t)one;
  if (one < 0xdc00 && end - *p >= 6 && (*p)[0] == '\\' && (*p)[1] == 'u') {
    int32_t other = hex4(*p + 2, end);
    if (other >= 0xdc00 && other <= 0xdfff) {
      *p += 6;
      return 0x10000 + ((uint32_t)(one - 0xd800) << 10) + (uint32_t)(other - 0xdc00);
    }
  }
  return 0xfffd;
}

static void add_character(stile_buffer *b, uint32_t c) {
  char utf8[4];
  size_t n = 0;
  if (c < 0x80) {
    utf8[n++] = (char)c;
  } else {
    if (c < 0x800) {
      utf8[n++] = (char)(0xc0 | c >> 6);
    } else {
      if (c < 0x10000) {
        utf8[n++] = (char)(0xe0 | c >> 12);
      } else {
        utf8[n++] = (char)(0xf0 | c >> 18);
        utf8[n++] = (char)(0x80 | (c >> 12 & 0x3f));
      }
      utf8[n++] = (char)(0x80 | (c >> 6 & 0x3f));
    }
    utf8[n++] = (char)(0x80 | (c & 0x3f));
  }
  stile_add(b, (stile_string){utf8, n});
}

bool stile_json_string(stile_json v, stile_string *out) {
  if (stile_json_type_of(v) != STILE_JSON_STRING || v.text.len < 2) return false;
  const char *p = v.text.data + 1, *limit = v.text.data + v.text.len - 1, *from = p;
  while (p < limit && *p != '\\') p++;
  if (p == limit) { // as it is written
    *out = (stile_string){from, (size_t)(limit - from)};
    return true;
  }
  stile_buffer b = {.data = stile_alloc(v.text.len), .capacity = v.text.len};
  while (p < limit) {
    if (*p != '\\') {
      p++;
      continue;
    }
    stile_add(&b, (stile_string){from, (size_t)(p - from)});
    if (++p < limit) add_character(&b, escaped(&p, limit));
    from = p;
  }
  stile_add(&b, (stile_string){from, (size_t)(p - from)});
  *out = stile_built(b);
  return true;
}

bool stile_json_bool(stile_json v, bool *out) {
  if (stile_json_type_of(v) != STILE_JSON_BOOL) return false;
  *out = v.text.data[0] == 't';
  return true;
}

// A number is 0.D * 10^point, and D are its significant digits. What comes after MOST digits only decides how it is rounded, so one
// more digit stands for it.
enum { MOST = 800 };

typedef struct {
  bool negative;
  int32_t point;
  size_t len;
  uint8_t digits[MOST + 1];
} decimal;

// Exponents beyond this are so far away that their value does not matter.
enum { FAR = 1 << 30 };

static bool read_decimal(stile_json v, decimal *d) {
  if (stile_json_type_of(v) != STILE_JSON_NUMBER) return false;
  const char *p = v.text.data, *limit = p + v.text.len;
  bool fraction = false, begun = false, rest = false;
  int64_t point = 0, exponent = 0;
  size_t zeros = 0; // after the last digit that is not zero
  d->len = 0;
  d->negative = *p == '-';
  if (d->negative) p++;
  for (; p < limit && (digit(p, limit) || *p == '.'); p++) {
    if (*p == '.') {
      fraction = true;
      continue;
    }
    begun = begun || *p != '0';
    if (begun ? !fraction : fraction) point += fraction ? -1 : 1;
    if (!begun) continue;
    if (*p == '0') {
      zeros++;
      continue;
    }
    for (; zeros && d->len < MOST; zeros--) d->digits[d->len++] = 0;
    zeros = 0;
    if (d->len < MOST) d->digits[d->len++] = (uint8_t)(*p - '0');
    else rest = true;
  }
  if (p < limit) { // e
    bool less = ++p < limit && *p == '-';
    if (p < limit && (*p == '-' || *p == '+')) p++;
    for (; digit(p, limit); p++) {
      if (exponent < FAR) exponent = exponent * 10 + (*p - '0');
    }
    if (less) exponent = -exponent;
  }
  point += exponent;
  d->point = point > FAR ? FAR : point < -FAR ? -FAR : (int32_t)point;
  if (rest) d->digits[d->len++] = 1;
  return true;
}

bool stile_json_int(stile_json v, int64_t *out) {
  decimal d;
  uint64_t n = 0;
  if (!read_decimal(v, &d)) return false;
  if (d.len) {
    if (d.point > 19 || (int64_t)d.len > d.point) return false; // too large, or with a fraction
    for (int32_t k = 0; k < d.point; k++) n = n * 10 + (k < (int32_t)d.len ? d.digits[k] : 0); // less than 10^19
  }
  if (n > (uint64_t)INT64_MAX + d.negative) return false;
  *out = (int64_t)(d.negative ? -n : n);
  return true;
}

// Large numbers, to convert between decimal and binary without an error. The largest is 5^1074 * 2^53, with 2,548 bits, or a decimal
// of MOST + 1 digits whose point is -324, with 1125 zeros of a binary fraction: less than WORDS.
enum { WORDS = 160 };

typedef struct { size_t len; uint32_t words[WORDS]; } large;

static void multiply(large *n, uint32_t by, uint32_t plus) {
  uint64_t carry = plus;
  for (size_t k = 0; k < n->len; k++) {
    carry += (uint64_t)n->words[k] * by;
    n->words[k] = (uint32_t)carry;
    carry >>= 32;
  }
  if (!carry) return;
  if (n->len == WORDS) __builtin_trap();
  n->words[n->len++] = (uint32_t)carry;
}

static uint32_t divide(large *n, uint32_t by) {
  uint64_t rest = 0;
  for (size_t k = n->len; k--;) {
    rest = rest << 32 | n->words[k];
    n->words[k] = (uint32_t)(rest / by);
    rest %= by;
  }
  while (n->len && !n->words[n->len - 1]) n->len--;
  return (uint32_t)rest;
}

static size_t bits(const large *n) { return n->len ? 32 * n->len - (size_t)__builtin_clz(n->words[n->len - 1]) : 0; }

static bool bit(const large *n, size_t k) { return k / 32 < n->len && n->words[k / 32] >> k % 32 & 1; }

// The double that is nearest to a decimal, the even one of two. It is false if that is infinite.
static bool to_double(const decimal *d, double *out) {
  union { double value; uint64_t bits; } made = {.bits = d->negative ? (uint64_t)1 << 63 : 0};
  if (d->len && d->point > 310) return false;
  if (!d->len || d->point < -326) {
    *out = made.value;
    return true;
  }
  large n = {0};
  for (size_t k = 0; k < d->len; k++) multiply(&n, 10, d->digits[k]);
  int32_t exponent = d->point - (int32_t)d->len; // of ten
  for (; exponent > 0; exponent--) multiply(&n, 10, 0);
  size_t shift = 0; // words of a binary fraction
  bool rest = false;
  if (exponent < 0) {
    size_t want = (size_t)(-exponent * 10 / 3) + 96, have = bits(&n); // 10 / 3 is more than the bits of a digit
    shift = want > have ? (want - have + 31) / 32 : 0;
    if (n.len + shift > WORDS) __builtin_trap();
    memmove(n.words + shift, n.words, n.len * sizeof *n.words);
    memset(n.words, 0, shift * sizeof *n.words);
    n.len += shift;
    for (; exponent < 0; exponent++) rest |= divide(&n, 10) != 0;
  }
  int32_t top = (int32_t)bits(&n) - 32 * (int32_t)shift; // it is at least 2^(top-1), and less than 2^top
  int32_t precision = top > -1022 ? 53 : top + 1074; // less of a number that is very small
  if (precision < 0) {
    *out = made.value;
    return true;
  }
  int32_t cut = (int32_t)bits(&n) - precision;
  uint64_t mantissa = 0;
  for (int32_t k = precision - 1; k >= 0; k--) mantissa = mantissa << 1 | (cut + k >= 0 && bit(&n, (size_t)(cut + k)));
  bool half = cut > 0 && bit(&n, (size_t)cut - 1);
  for (int32_t k = 0; k < cut - 1; k++) rest |= bit(&n, (size_t)k);
  if (half && (rest || mantissa & 1)) mantissa++;
  if (precision == 53) {
    if (mantissa >> 53) mantissa >>= 1, top++;
    if (top > 1024) return false;
    mantissa = (mantissa & (((uint64_t)1 << 52) - 1)) | (uint64_t)(top + 1022) << 52;
  }
  made.bits |= mantissa;
  *out = made.value;
  return true;
}

bool stile_json_number(stile_json v, double *out) {
  decimal d;
  return read_decimal(v, &d) && to_double(&d, out);
}

stile_json_items stile_items(stile_json v) {
  stile_json_items i = {0};
  stile_json_type type = stile_json_type_of(v);
  if (type == STILE_JSON_ARRAY || type == STILE_JSON_OBJECT) {
    i.at = v.text.data + 1;
    i.end = v.text.data + v.text.len;
    i.object = type == STILE_JSON_OBJECT;
  }
  return i;
}

bool stile_next(stile_json_items *i) {
  const char *p = space(i->at, i->end);
  if (p < i->end && *p == ',') p = space(p + 1, i->end);
  if (p >= i->end || *p == ']' || *p == '}') return false;
  if (i->object) {
    const char *name = p;
    p = skip_string(p, i->end);
    if (!stile_json_string((stile_json){{name, (size_t)(p - name)}}, &i->name)) return false;
    p = space(p, i->end);
    if (p < i->end) p = space(p + 1, i->end); // the colon
  }
  const char *after = skip(p, i->end);
  i->at = after;
  while (after > p && space(after - 1, after) == after) after--;
  i->value.text = (stile_string){p, (size_t)(after - p)};
  return true;
}

stile_json stile_get(stile_json object, const char *name) {
  stile_json found = {0};
  stile_string wanted = stile_text(name);
  if (stile_json_type_of(object) != STILE_JSON_OBJECT) return found;
  for (stile_json_items i = stile_items(object); stile_next(&i);) {
    if (stile_equal(i.name, wanted)) found = i.value;
  }
  return found;
}

stile_string stile_get_string(stile_json object, const char *name, stile_string otherwise) {
  stile_string out;
  return stile_json_string(stile_get(object, name), &out) ? out : otherwise;
}

int64_t stile_get_int(stile_json object, const char *name, int64_t otherwise) {
  int64_t out;
  return stile_json_int(stile_get(object, name), &out) ? out : otherwise;
}

double stile_get_number(stile_json object, const char *name, double otherwise) {
  double out;
  return stile_json_number(stile_get(object, name), &out) ? out : otherwise;
}

bool stile_get_bool(stile_json object, const char *name, bool otherwise) {
  bool out;
  return stile_json_bool(stile_get(object, name), &out) ? out : otherwise;
}

// Writing JSON. A comma is needed unless what is before begins something: no value ends like that.

static void separate(stile_buffer *out) {
  char last = out->len ? out->data[out->len - 1] : '[';
  if (last != '[' && last != '{' && last != ':') add_char(out, ',');
}

void stile_begin(stile_buffer *out, char bracket) {
  separate(out);
  add_char(out, bracket);
}

void stile_end(stile_buffer *out, char bracket) { add_char(out, bracket); }

void stile_put_name_string(stile_buffer *out, stile_string name) {
  stile_put_string(out, name);
  add_char(out, ':');
}

void stile_put_name(stile_buffer *out, const char *name) { stile_put_name_string(out, stile_text(name)); }

void stile_put_string(stile_buffer *out, stile_string text) {
  static const char digits[] = "0123456789abcdef";
  separate(out);
  add_char(out, '"');
  size_t from = 0;
  for (size_t k = 0; k < text.len;) {
    unsigned char c = (unsigned char)text.data[k];
    size_t n = c < 0x20 || c == '"' || c == '\\' ? 0 : character(text.data + k, text.data + text.len);
    if (n) {
      k += n;
      continue;
    }
    stile_add(out, (stile_string){text.data + from, k - from});
    from = ++k;
    if (c == '"' || c == '\\') {
      stile_add(out, (stile_string){(char[]){'\\', (char)c}, 2});
    } else if (c < 0x20) {
      stile_add(out, stile_text("\\u00"));
      stile_add(out, (stile_string){(char[]){digits[c >> 4], digits[c & 15]}, 2});
    } else {
      add_character(out, 0xfffd);
    }
  }
  stile_add(out, (stile_string){text.data + from, text.len - from});
  add_char(out, '"');
}

void stile_put_int(stile_buffer *out, int64_t number) {
  separate(out);
  stile_add_int(out, number);
}

// All digits of a double that is not zero.
static void exact(uint64_t mantissa, int32_t exponent, decimal *d) {
  large n = {0};
  multiply(&n, 1, (uint32_t)(mantissa >> 32));
  if (n.len) { // shifted by one word
    n.words[1] = n.words[0];
    n.words[0] = (uint32_t)mantissa;
    n.len = 2;
  } else {
    multiply(&n, 1, (uint32_t)mantissa);
  }
  d->point = exponent < 0 ? exponent : 0;
  for (; exponent > 0; exponent--) multiply(&n, 2, 0);
  for (; exponent < 0; exponent++) multiply(&n, 5, 0); // and a tenth each
  uint8_t backwards[MOST];
  size_t len = 0;
  while (n.len && len < MOST) backwards[len++] = (uint8_t)divide(&n, 10);
  d->len = len;
  d->point += (int32_t)len;
  for (size_t k = 0; k < len; k++) d->digits[k] = backwards[len - 1 - k];
}

static void round_decimal(decimal *d, size_t len) {
  if (d->len <= len) return;
  bool up = d->digits[len] >= 5;
  d->len = len;
  while (up && d->len) {
    if (++d->digits[d->len - 1] < 10) return;
    d->len--; // a nine became a zero
  }
  if (up) {
    d->digits[0] = 1;
    d->len = 1;
    d->point++;
  }
}

void stile_put_number(stile_buffer *out, double number) {
  union { double value; uint64_t bits; } made = {.value = number};
  uint64_t mantissa = made.bits & (((uint64_t)1 << 52) - 1);
  int32_t exponent = (int32_t)(made.bits >> 52 & 0x7ff);
  if (exponent == 0x7ff) {
    stile_put_null(out);
    return;
  }
  separate(out);
  if (made.bits >> 63) add_char(out, '-');
  if (!exponent && !mantissa) {
    add_char(out, '0');
    return;
  }
  decimal all, d;
  exact(exponent ? mantissa | (uint64_t)1 << 52 : mantissa, (exponent ? exponent : 1) - 1075, &all);
  all.negative = made.bits >> 63;
  for (size_t len = 15; len <= 17; len++) { // 17 digits tell every double from the others
    double again;
    d = all;
    round_decimal(&d, len);
    if (to_double(&d, &again) && again == number) break;
  }
  while (d.len > 1 && !d.digits[d.len - 1]) d.len--;
  int32_t point = d.point;
  bool scientific = point < -5 || point > 21;
  if (scientific) point = 1;
  if (point <= 0) stile_add(out, stile_text("0."));
  for (int32_t k = point; k < 0; k++) add_char(out, '0');
  for (int32_t k = 0; k < (int32_t)d.len || k < point; k++) {
    if (k == point && k) add_char(out, '.');
    add_char(out, k < (int32_t)d.len ? (char)('0' + d.digits[k]) : '0');
  }
  if (scientific) {
    add_char(out, 'e');
    stile_add_int(out, d.point - 1);
  }
}

void stile_put_bool(stile_buffer *out, bool value) {
  separate(out);
  stile_add(out, stile_text(value ? "true" : "false"));
}

void stile_put_null(stile_buffer *out) {
  separate(out);
  stile_add(out, stile_text("null"));
}

void stile_put_json(stile_buffer *out, stile_json value) {
  separate(out);
  stile_add(out, value.text.len ? value.text : stile_text("null"));
}

#ifdef __wasm__ // the rest calls the host

// Generated from the WIT by guest-sdk/generate: do not edit.
_Static_assert(sizeof(stile_denial) == 32, "layout");
_Static_assert(offsetof(stile_denial, binding) == 0, "layout");
_Static_assert(offsetof(stile_denial, operation) == 8, "layout");
_Static_assert(offsetof(stile_denial, reason) == 16, "layout");
_Static_assert(offsetof(stile_denial, remedy) == 24, "layout");
_Static_assert(sizeof(stile_error) == 40, "layout");
_Static_assert(offsetof(stile_error, value) == 8, "layout");
_Static_assert(sizeof(stile_header) == 16, "layout");
_Static_assert(offsetof(stile_header, name) == 0, "layout");
_Static_assert(offsetof(stile_header, value) == 8, "layout");
__attribute__((import_module("stile:capability/env@0.1.0"), import_name("[resource-drop]env")))
extern void stile_import_1(uint32_t);
void stile_env_drop(stile_env self) { stile_import_1(self.handle); }

_Static_assert(sizeof(stile_tuple_string_string) == 16, "layout");
_Static_assert(offsetof(stile_tuple_string_string, f0) == 0, "layout");
_Static_assert(offsetof(stile_tuple_string_string, f1) == 8, "layout");
_Static_assert(sizeof(stile_list_tuple_string_string) == 8, "layout");
_Static_assert(offsetof(stile_list_tuple_string_string, len) == 4, "layout");
_Static_assert(sizeof(stile_tuple_string_string) == 16, "layout");
__attribute__((import_module("stile:capability/env@0.1.0"), import_name("[method]env.names")))
extern void stile_import_2(uint32_t, uint32_t);
stile_list_tuple_string_string stile_env_names(stile_env self) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  f0 = self.handle;
  stile_list_tuple_string_string result;
  _Static_assert(sizeof result == 8, "layout");
  f1 = (uint32_t)(uintptr_t)&result;
  stile_import_2(f0, f1);
  return result;
}

_Static_assert(sizeof(stile_list_string) == 8, "layout");
_Static_assert(offsetof(stile_list_string, len) == 4, "layout");
_Static_assert(sizeof(stile_string) == 8, "layout");
__attribute__((import_module("stile:capability/env@0.1.0"), import_name("[method]env.subset")))
extern void stile_import_3(uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_env_subset(stile_env self, stile_list_string names, stile_env *out, stile_string *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)names.data;
  f2 = names.len;
  struct { bool failed; union { stile_env ok; stile_string error; } value; } result;
  _Static_assert(sizeof result == 12, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_3(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/env@0.1.0"), import_name("[method]env.vars")))
extern void stile_import_4(uint32_t, uint32_t);
stile_string stile_env_vars(stile_env self) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  f0 = self.handle;
  stile_string result;
  _Static_assert(sizeof result == 8, "layout");
  f1 = (uint32_t)(uintptr_t)&result;
  stile_import_4(f0, f1);
  return result;
}

__attribute__((import_module("stile:capability/blob@0.1.0"), import_name("[resource-drop]blob")))
extern void stile_import_5(uint32_t);
void stile_blob_drop(stile_blob self) { stile_import_5(self.handle); }

__attribute__((import_module("stile:capability/blob@0.1.0"), import_name("[resource-drop]writer")))
extern void stile_import_6(uint32_t);
void stile_blob_writer_drop(stile_blob_writer self) { stile_import_6(self.handle); }

__attribute__((import_module("stile:capability/blob@0.1.0"), import_name("[resource-drop]store")))
extern void stile_import_7(uint32_t);
void stile_blob_store_drop(stile_blob_store self) { stile_import_7(self.handle); }

__attribute__((import_module("stile:capability/blob@0.1.0"), import_name("[method]blob.size")))
extern uint64_t stile_import_8(uint32_t);
uint64_t stile_blob_size(stile_blob self) {
  uint32_t f0 = 0;
  f0 = self.handle;
  return (uint64_t)stile_import_8(f0);
}

__attribute__((import_module("stile:capability/blob@0.1.0"), import_name("[method]blob.media-type")))
extern void stile_import_9(uint32_t, uint32_t);
stile_string stile_blob_media_type(stile_blob self) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  f0 = self.handle;
  stile_string result;
  _Static_assert(sizeof result == 8, "layout");
  f1 = (uint32_t)(uintptr_t)&result;
  stile_import_9(f0, f1);
  return result;
}

__attribute__((import_module("stile:capability/blob@0.1.0"), import_name("[method]blob.digest")))
extern void stile_import_10(uint32_t, uint32_t);
stile_string stile_blob_digest(stile_blob self) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  f0 = self.handle;
  stile_string result;
  _Static_assert(sizeof result == 8, "layout");
  f1 = (uint32_t)(uintptr_t)&result;
  stile_import_10(f0, f1);
  return result;
}

__attribute__((import_module("stile:capability/blob@0.1.0"), import_name("[method]blob.text")))
extern void stile_import_11(uint32_t, uint64_t, uint32_t);
bool stile_blob_text(stile_blob self, uint64_t max, stile_string *out, stile_error *error) {
  uint32_t f0 = 0;
  uint64_t f1 = 0;
  uint32_t f2 = 0;
  f0 = self.handle;
  f1 = (uint64_t)max;
  struct { bool failed; union { stile_string ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f2 = (uint32_t)(uintptr_t)&result;
  stile_import_11(f0, f1, f2);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/blob@0.1.0"), import_name("[method]blob.bytes")))
extern void stile_import_12(uint32_t, uint64_t, uint32_t, uint32_t);
bool stile_blob_bytes(stile_blob self, uint64_t offset, uint32_t length, stile_bytes *out, stile_error *error) {
  uint32_t f0 = 0;
  uint64_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint64_t)offset;
  f2 = (uint32_t)length;
  struct { bool failed; union { stile_bytes ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_12(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/blob@0.1.0"), import_name("[method]blob.packed")))
extern void stile_import_13(uint32_t, uint64_t, uint32_t, uint32_t);
bool stile_blob_packed(stile_blob self, uint64_t offset, uint32_t length, stile_string *out, stile_error *error) {
  uint32_t f0 = 0;
  uint64_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint64_t)offset;
  f2 = (uint32_t)length;
  struct { bool failed; union { stile_string ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_13(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/blob@0.1.0"), import_name("[method]writer.append")))
extern void stile_import_14(uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_blob_writer_append(stile_blob_writer self, stile_bytes bytes, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)bytes.data;
  f2 = bytes.len;
  struct { bool failed; union { stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_14(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  return !result.failed;
}

__attribute__((import_module("stile:capability/blob@0.1.0"), import_name("[method]writer.append-text")))
extern void stile_import_15(uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_blob_writer_append_text(stile_blob_writer self, stile_string text, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)text.data;
  f2 = text.len;
  struct { bool failed; union { stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_15(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  return !result.failed;
}

__attribute__((import_module("stile:capability/blob@0.1.0"), import_name("[method]writer.append-blob")))
extern void stile_import_16(uint32_t, uint32_t, uint32_t);
bool stile_blob_writer_append_blob(stile_blob_writer self, stile_blob source, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  f0 = self.handle;
  f1 = source.handle;
  struct { bool failed; union { stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f2 = (uint32_t)(uintptr_t)&result;
  stile_import_16(f0, f1, f2);
  if (result.failed && error) *error = result.value.error;
  return !result.failed;
}

__attribute__((import_module("stile:capability/blob@0.1.0"), import_name("[method]store.create")))
extern void stile_import_17(uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_blob_store_create(stile_blob_store self, stile_string media_type, stile_blob_writer *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)media_type.data;
  f2 = media_type.len;
  struct { bool failed; union { stile_blob_writer ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_17(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/blob@0.1.0"), import_name("[method]store.finish")))
extern void stile_import_18(uint32_t, uint32_t, uint32_t);
bool stile_blob_store_finish(stile_blob_store self, stile_blob_writer writer, stile_blob *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  f0 = self.handle;
  f1 = writer.handle;
  struct { bool failed; union { stile_blob ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f2 = (uint32_t)(uintptr_t)&result;
  stile_import_18(f0, f1, f2);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/blob@0.1.0"), import_name("get")))
extern void stile_import_19(uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_env_blob(stile_env self, stile_string name, stile_blob_store *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)name.data;
  f2 = name.len;
  struct { bool failed; union { stile_blob_store ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_19(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/blob@0.1.0"), import_name("put")))
extern void stile_import_20(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_env_put_blob(stile_env self, stile_string name, stile_blob_store store, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)name.data;
  f2 = name.len;
  f3 = store.handle;
  struct { bool failed; union { stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f4 = (uint32_t)(uintptr_t)&result;
  stile_import_20(f0, f1, f2, f3, f4);
  if (result.failed && error) *error = result.value.error;
  return !result.failed;
}

__attribute__((import_module("stile:capability/poll@0.1.0"), import_name("[resource-drop]pollable")))
extern void stile_import_21(uint32_t);
void stile_pollable_drop(stile_pollable self) { stile_import_21(self.handle); }

__attribute__((import_module("stile:capability/poll@0.1.0"), import_name("[method]pollable.ready")))
extern uint32_t stile_import_22(uint32_t);
bool stile_pollable_ready(stile_pollable self) {
  uint32_t f0 = 0;
  f0 = self.handle;
  return stile_import_22(f0) != 0;
}

__attribute__((import_module("stile:capability/poll@0.1.0"), import_name("[method]pollable.block")))
extern void stile_import_23(uint32_t);
void stile_pollable_block(stile_pollable self) {
  uint32_t f0 = 0;
  f0 = self.handle;
  stile_import_23(f0);
}

_Static_assert(sizeof(stile_list_pollable) == 8, "layout");
_Static_assert(offsetof(stile_list_pollable, len) == 4, "layout");
_Static_assert(sizeof(stile_pollable) == 4, "layout");
_Static_assert(sizeof(stile_list_u32) == 8, "layout");
_Static_assert(offsetof(stile_list_u32, len) == 4, "layout");
_Static_assert(sizeof(uint32_t) == 4, "layout");
__attribute__((import_module("stile:capability/poll@0.1.0"), import_name("poll")))
extern void stile_import_24(uint32_t, uint32_t, uint32_t);
stile_list_u32 stile_poll(stile_list_pollable pollables) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  f0 = (uint32_t)(uintptr_t)pollables.data;
  f1 = pollables.len;
  stile_list_u32 result;
  _Static_assert(sizeof result == 8, "layout");
  f2 = (uint32_t)(uintptr_t)&result;
  stile_import_24(f0, f1, f2);
  return result;
}

__attribute__((import_module("stile:capability/poll@0.1.0"), import_name("park")))
extern uint32_t stile_import_25(uint32_t, uint32_t);
bool stile_park(stile_list_pollable pollables) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  f0 = (uint32_t)(uintptr_t)pollables.data;
  f1 = pollables.len;
  return stile_import_25(f0, f1) != 0;
}

_Static_assert(sizeof(stile_browser_page) == 20, "layout");
_Static_assert(offsetof(stile_browser_page, url) == 0, "layout");
_Static_assert(offsetof(stile_browser_page, title) == 8, "layout");
_Static_assert(offsetof(stile_browser_page, status) == 16, "layout");
_Static_assert(sizeof(stile_browser_awaited) == 12, "layout");
_Static_assert(offsetof(stile_browser_awaited, value) == 4, "layout");
_Static_assert(sizeof(stile_browser_outcome) == 24, "layout");
_Static_assert(offsetof(stile_browser_outcome, value) == 4, "layout");
__attribute__((import_module("stile:capability/browser@0.1.0"), import_name("[resource-drop]session")))
extern void stile_import_26(uint32_t);
void stile_browser_session_drop(stile_browser_session self) { stile_import_26(self.handle); }

__attribute__((import_module("stile:capability/browser@0.1.0"), import_name("[resource-drop]pending")))
extern void stile_import_27(uint32_t);
void stile_browser_pending_drop(stile_browser_pending self) { stile_import_27(self.handle); }

__attribute__((import_module("stile:capability/browser@0.1.0"), import_name("[method]session.open")))
extern void stile_import_28(uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_browser_session_open(stile_browser_session self, stile_string url, stile_browser_pending *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)url.data;
  f2 = url.len;
  struct { bool failed; union { stile_browser_pending ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_28(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/browser@0.1.0"), import_name("[method]session.click")))
extern void stile_import_29(uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_browser_session_click(stile_browser_session self, stile_string selector, stile_browser_pending *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)selector.data;
  f2 = selector.len;
  struct { bool failed; union { stile_browser_pending ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_29(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/browser@0.1.0"), import_name("[method]session.fill")))
extern void stile_import_30(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_browser_session_fill(stile_browser_session self, stile_string selector, stile_string text, stile_browser_pending *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  uint32_t f5 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)selector.data;
  f2 = selector.len;
  f3 = (uint32_t)(uintptr_t)text.data;
  f4 = text.len;
  struct { bool failed; union { stile_browser_pending ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f5 = (uint32_t)(uintptr_t)&result;
  stile_import_30(f0, f1, f2, f3, f4, f5);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/browser@0.1.0"), import_name("[method]session.press")))
extern void stile_import_31(uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_browser_session_press(stile_browser_session self, stile_string key, stile_browser_pending *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)key.data;
  f2 = key.len;
  struct { bool failed; union { stile_browser_pending ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_31(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/browser@0.1.0"), import_name("[method]session.wait-for")))
extern void stile_import_32(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_browser_session_wait_for(stile_browser_session self, const stile_browser_awaited *what, stile_browser_pending *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  f0 = self.handle;
  f1 = (*what).tag;
  switch ((*what).tag) {
  case STILE_BROWSER_AWAITED_SELECTOR:
  f2 = (uint32_t)(uintptr_t)(*what).value.selector.data;
  f3 = (*what).value.selector.len;
  break;
  case STILE_BROWSER_AWAITED_TEXT:
  f2 = (uint32_t)(uintptr_t)(*what).value.text.data;
  f3 = (*what).value.text.len;
  break;
  case STILE_BROWSER_AWAITED_URL:
  f2 = (uint32_t)(uintptr_t)(*what).value.url.data;
  f3 = (*what).value.url.len;
  break;
  }
  struct { bool failed; union { stile_browser_pending ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f4 = (uint32_t)(uintptr_t)&result;
  stile_import_32(f0, f1, f2, f3, f4);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

_Static_assert(sizeof(stile_option_string) == 12, "layout");
_Static_assert(offsetof(stile_option_string, value) == 4, "layout");
__attribute__((import_module("stile:capability/browser@0.1.0"), import_name("[method]session.text")))
extern void stile_import_33(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_browser_session_text(stile_browser_session self, const stile_string *selector, stile_browser_pending *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  f0 = self.handle;
  if (selector) {
  f1 = 1;
  f2 = (uint32_t)(uintptr_t)(*selector).data;
  f3 = (*selector).len;
  }
  struct { bool failed; union { stile_browser_pending ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f4 = (uint32_t)(uintptr_t)&result;
  stile_import_33(f0, f1, f2, f3, f4);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/browser@0.1.0"), import_name("[method]session.html")))
extern void stile_import_34(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_browser_session_html(stile_browser_session self, const stile_string *selector, stile_browser_pending *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  f0 = self.handle;
  if (selector) {
  f1 = 1;
  f2 = (uint32_t)(uintptr_t)(*selector).data;
  f3 = (*selector).len;
  }
  struct { bool failed; union { stile_browser_pending ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f4 = (uint32_t)(uintptr_t)&result;
  stile_import_34(f0, f1, f2, f3, f4);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/browser@0.1.0"), import_name("[method]session.markdown")))
extern void stile_import_35(uint32_t, uint32_t);
bool stile_browser_session_markdown(stile_browser_session self, stile_browser_pending *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  f0 = self.handle;
  struct { bool failed; union { stile_browser_pending ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f1 = (uint32_t)(uintptr_t)&result;
  stile_import_35(f0, f1);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/browser@0.1.0"), import_name("[method]session.evaluate")))
extern void stile_import_36(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_browser_session_evaluate(stile_browser_session self, stile_string code, stile_string arguments, stile_browser_pending *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  uint32_t f5 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)code.data;
  f2 = code.len;
  f3 = (uint32_t)(uintptr_t)arguments.data;
  f4 = arguments.len;
  struct { bool failed; union { stile_browser_pending ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f5 = (uint32_t)(uintptr_t)&result;
  stile_import_36(f0, f1, f2, f3, f4, f5);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/browser@0.1.0"), import_name("[method]session.screenshot")))
extern void stile_import_37(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_browser_session_screenshot(stile_browser_session self, bool full_page, const stile_string *selector, stile_browser_pending *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  uint32_t f5 = 0;
  f0 = self.handle;
  f1 = (uint32_t)full_page;
  if (selector) {
  f2 = 1;
  f3 = (uint32_t)(uintptr_t)(*selector).data;
  f4 = (*selector).len;
  }
  struct { bool failed; union { stile_browser_pending ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f5 = (uint32_t)(uintptr_t)&result;
  stile_import_37(f0, f1, f2, f3, f4, f5);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/browser@0.1.0"), import_name("[method]session.pdf")))
extern void stile_import_38(uint32_t, uint32_t);
bool stile_browser_session_pdf(stile_browser_session self, stile_browser_pending *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  f0 = self.handle;
  struct { bool failed; union { stile_browser_pending ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f1 = (uint32_t)(uintptr_t)&result;
  stile_import_38(f0, f1);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/browser@0.1.0"), import_name("[method]session.download")))
extern void stile_import_39(uint32_t, uint32_t);
bool stile_browser_session_download(stile_browser_session self, stile_browser_pending *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  f0 = self.handle;
  struct { bool failed; union { stile_browser_pending ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f1 = (uint32_t)(uintptr_t)&result;
  stile_import_39(f0, f1);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/browser@0.1.0"), import_name("[method]session.leave")))
extern void stile_import_40(uint32_t, uint32_t);
bool stile_browser_session_leave(stile_browser_session self, stile_browser_pending *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  f0 = self.handle;
  struct { bool failed; union { stile_browser_pending ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f1 = (uint32_t)(uintptr_t)&result;
  stile_import_40(f0, f1);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/browser@0.1.0"), import_name("[method]pending.subscribe")))
extern uint32_t stile_import_41(uint32_t);
stile_pollable stile_browser_pending_subscribe(stile_browser_pending self) {
  uint32_t f0 = 0;
  f0 = self.handle;
  return (stile_pollable){stile_import_41(f0)};
}

__attribute__((import_module("stile:capability/browser@0.1.0"), import_name("[method]pending.take")))
extern void stile_import_42(uint32_t, uint32_t);
bool stile_browser_pending_take(stile_browser_pending self, stile_browser_outcome *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  f0 = self.handle;
  struct { bool failed; union { stile_browser_outcome ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f1 = (uint32_t)(uintptr_t)&result;
  stile_import_42(f0, f1);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/browser@0.1.0"), import_name("get")))
extern void stile_import_43(uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_env_browser(stile_env self, stile_string name, stile_browser_session *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)name.data;
  f2 = name.len;
  struct { bool failed; union { stile_browser_session ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_43(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/browser@0.1.0"), import_name("put")))
extern void stile_import_44(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_env_put_browser(stile_env self, stile_string name, stile_browser_session session, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)name.data;
  f2 = name.len;
  f3 = session.handle;
  struct { bool failed; union { stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f4 = (uint32_t)(uintptr_t)&result;
  stile_import_44(f0, f1, f2, f3, f4);
  if (result.failed && error) *error = result.value.error;
  return !result.failed;
}

__attribute__((import_module("stile:capability/clock@0.1.0"), import_name("[resource-drop]clock")))
extern void stile_import_45(uint32_t);
void stile_clock_drop(stile_clock self) { stile_import_45(self.handle); }

__attribute__((import_module("stile:capability/clock@0.1.0"), import_name("[method]clock.now")))
extern uint64_t stile_import_46(uint32_t);
uint64_t stile_clock_now(stile_clock self) {
  uint32_t f0 = 0;
  f0 = self.handle;
  return (uint64_t)stile_import_46(f0);
}

__attribute__((import_module("stile:capability/clock@0.1.0"), import_name("[method]clock.monotonic")))
extern uint64_t stile_import_47(uint32_t);
uint64_t stile_clock_monotonic(stile_clock self) {
  uint32_t f0 = 0;
  f0 = self.handle;
  return (uint64_t)stile_import_47(f0);
}

__attribute__((import_module("stile:capability/clock@0.1.0"), import_name("[method]clock.subscribe")))
extern uint32_t stile_import_48(uint32_t, uint64_t);
stile_pollable stile_clock_subscribe(stile_clock self, uint64_t nanoseconds) {
  uint32_t f0 = 0;
  uint64_t f1 = 0;
  f0 = self.handle;
  f1 = (uint64_t)nanoseconds;
  return (stile_pollable){stile_import_48(f0, f1)};
}

__attribute__((import_module("stile:capability/clock@0.1.0"), import_name("get")))
extern void stile_import_49(uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_env_clock(stile_env self, stile_string name, stile_clock *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)name.data;
  f2 = name.len;
  struct { bool failed; union { stile_clock ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_49(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/clock@0.1.0"), import_name("put")))
extern void stile_import_50(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_env_put_clock(stile_env self, stile_string name, stile_clock clock, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)name.data;
  f2 = name.len;
  f3 = clock.handle;
  struct { bool failed; union { stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f4 = (uint32_t)(uintptr_t)&result;
  stile_import_50(f0, f1, f2, f3, f4);
  if (result.failed && error) *error = result.value.error;
  return !result.failed;
}

_Static_assert(sizeof(stile_code_level) == 1, "layout");
_Static_assert(sizeof(stile_code_line) == 12, "layout");
_Static_assert(offsetof(stile_code_line, level) == 0, "layout");
_Static_assert(offsetof(stile_code_line, text) == 4, "layout");
_Static_assert(sizeof(stile_code_failure) == 24, "layout");
_Static_assert(offsetof(stile_code_failure, name) == 0, "layout");
_Static_assert(offsetof(stile_code_failure, message) == 8, "layout");
_Static_assert(offsetof(stile_code_failure, stack) == 16, "layout");
__attribute__((import_module("stile:capability/code@0.1.0"), import_name("[resource-drop]runner")))
extern void stile_import_51(uint32_t);
void stile_code_runner_drop(stile_code_runner self) { stile_import_51(self.handle); }

__attribute__((import_module("stile:capability/code@0.1.0"), import_name("[resource-drop]pending")))
extern void stile_import_52(uint32_t);
void stile_code_pending_drop(stile_code_pending self) { stile_import_52(self.handle); }

__attribute__((import_module("stile:capability/code@0.1.0"), import_name("[method]runner.start")))
extern void stile_import_53(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_code_runner_start(stile_code_runner self, stile_string code, stile_string name, stile_string input, stile_env env, stile_code_pending *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  uint32_t f5 = 0;
  uint32_t f6 = 0;
  uint32_t f7 = 0;
  uint32_t f8 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)code.data;
  f2 = code.len;
  f3 = (uint32_t)(uintptr_t)name.data;
  f4 = name.len;
  f5 = (uint32_t)(uintptr_t)input.data;
  f6 = input.len;
  f7 = env.handle;
  struct { bool failed; union { stile_code_pending ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f8 = (uint32_t)(uintptr_t)&result;
  stile_import_53(f0, f1, f2, f3, f4, f5, f6, f7, f8);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/code@0.1.0"), import_name("[method]pending.subscribe")))
extern uint32_t stile_import_54(uint32_t);
stile_pollable stile_code_pending_subscribe(stile_code_pending self) {
  uint32_t f0 = 0;
  f0 = self.handle;
  return (stile_pollable){stile_import_54(f0)};
}

__attribute__((import_module("stile:capability/code@0.1.0"), import_name("[method]pending.take")))
extern void stile_import_55(uint32_t, uint32_t);
bool stile_code_pending_take(stile_code_pending self, stile_string *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  f0 = self.handle;
  struct { bool failed; union { stile_string ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f1 = (uint32_t)(uintptr_t)&result;
  stile_import_55(f0, f1);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

_Static_assert(sizeof(stile_option_code_failure) == 28, "layout");
_Static_assert(offsetof(stile_option_code_failure, value) == 4, "layout");
__attribute__((import_module("stile:capability/code@0.1.0"), import_name("[method]pending.thrown")))
extern void stile_import_56(uint32_t, uint32_t);
bool stile_code_pending_thrown(stile_code_pending self, stile_option_code_failure *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  f0 = self.handle;
  struct { bool failed; union { stile_option_code_failure ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f1 = (uint32_t)(uintptr_t)&result;
  stile_import_56(f0, f1);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

_Static_assert(sizeof(stile_list_code_line) == 8, "layout");
_Static_assert(offsetof(stile_list_code_line, len) == 4, "layout");
_Static_assert(sizeof(stile_code_line) == 12, "layout");
__attribute__((import_module("stile:capability/code@0.1.0"), import_name("[method]pending.log")))
extern void stile_import_57(uint32_t, uint32_t);
bool stile_code_pending_log(stile_code_pending self, stile_list_code_line *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  f0 = self.handle;
  struct { bool failed; union { stile_list_code_line ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f1 = (uint32_t)(uintptr_t)&result;
  stile_import_57(f0, f1);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/code@0.1.0"), import_name("get")))
extern void stile_import_58(uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_env_code(stile_env self, stile_string name, stile_code_runner *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)name.data;
  f2 = name.len;
  struct { bool failed; union { stile_code_runner ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_58(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/code@0.1.0"), import_name("put")))
extern void stile_import_59(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_env_put_code(stile_env self, stile_string name, stile_code_runner runner, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)name.data;
  f2 = name.len;
  f3 = runner.handle;
  struct { bool failed; union { stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f4 = (uint32_t)(uintptr_t)&result;
  stile_import_59(f0, f1, f2, f3, f4);
  if (result.failed && error) *error = result.value.error;
  return !result.failed;
}

_Static_assert(sizeof(stile_console_level) == 1, "layout");
__attribute__((import_module("stile:capability/console@0.1.0"), import_name("[resource-drop]console")))
extern void stile_import_60(uint32_t);
void stile_console_drop(stile_console self) { stile_import_60(self.handle); }

__attribute__((import_module("stile:capability/console@0.1.0"), import_name("[method]console.log")))
extern void stile_import_61(uint32_t, uint32_t, uint32_t, uint32_t);
void stile_console_log(stile_console self, stile_console_level level, stile_string message) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)level;
  f2 = (uint32_t)(uintptr_t)message.data;
  f3 = message.len;
  stile_import_61(f0, f1, f2, f3);
}

_Static_assert(sizeof(stile_option_double) == 16, "layout");
_Static_assert(offsetof(stile_option_double, value) == 8, "layout");
__attribute__((import_module("stile:capability/console@0.1.0"), import_name("[method]console.progress")))
extern void stile_import_62(uint32_t, double, uint32_t, double, uint32_t, uint32_t);
void stile_console_progress(stile_console self, double done, const double *total, stile_string message) {
  uint32_t f0 = 0;
  double f1 = 0;
  uint32_t f2 = 0;
  double f3 = 0;
  uint32_t f4 = 0;
  uint32_t f5 = 0;
  f0 = self.handle;
  f1 = done;
  if (total) {
  f2 = 1;
  f3 = (*total);
  }
  f4 = (uint32_t)(uintptr_t)message.data;
  f5 = message.len;
  stile_import_62(f0, f1, f2, f3, f4, f5);
}

__attribute__((import_module("stile:capability/console@0.1.0"), import_name("get")))
extern void stile_import_63(uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_env_console(stile_env self, stile_string name, stile_console *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)name.data;
  f2 = name.len;
  struct { bool failed; union { stile_console ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_63(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/console@0.1.0"), import_name("put")))
extern void stile_import_64(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_env_put_console(stile_env self, stile_string name, stile_console console, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)name.data;
  f2 = name.len;
  f3 = console.handle;
  struct { bool failed; union { stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f4 = (uint32_t)(uintptr_t)&result;
  stile_import_64(f0, f1, f2, f3, f4);
  if (result.failed && error) *error = result.value.error;
  return !result.failed;
}

_Static_assert(sizeof(stile_http_content) == 12, "layout");
_Static_assert(offsetof(stile_http_content, value) == 4, "layout");
_Static_assert(sizeof(stile_http_redirect) == 1, "layout");
_Static_assert(sizeof(stile_list_header) == 8, "layout");
_Static_assert(offsetof(stile_list_header, len) == 4, "layout");
_Static_assert(sizeof(stile_header) == 16, "layout");
_Static_assert(sizeof(stile_option_u32) == 8, "layout");
_Static_assert(offsetof(stile_option_u32, value) == 4, "layout");
_Static_assert(sizeof(stile_http_request) == 48, "layout");
_Static_assert(offsetof(stile_http_request, method) == 0, "layout");
_Static_assert(offsetof(stile_http_request, url) == 8, "layout");
_Static_assert(offsetof(stile_http_request, headers) == 16, "layout");
_Static_assert(offsetof(stile_http_request, content) == 24, "layout");
_Static_assert(offsetof(stile_http_request, redirect) == 36, "layout");
_Static_assert(offsetof(stile_http_request, timeout) == 40, "layout");
_Static_assert(sizeof(stile_http_head) == 24, "layout");
_Static_assert(offsetof(stile_http_head, status) == 0, "layout");
_Static_assert(offsetof(stile_http_head, url) == 4, "layout");
_Static_assert(offsetof(stile_http_head, redirected) == 12, "layout");
_Static_assert(offsetof(stile_http_head, headers) == 16, "layout");
_Static_assert(sizeof(stile_option_u16) == 4, "layout");
_Static_assert(offsetof(stile_option_u16, value) == 2, "layout");
_Static_assert(sizeof(stile_http_rule) == 44, "layout");
_Static_assert(offsetof(stile_http_rule, scheme) == 0, "layout");
_Static_assert(offsetof(stile_http_rule, host) == 8, "layout");
_Static_assert(offsetof(stile_http_rule, port) == 16, "layout");
_Static_assert(offsetof(stile_http_rule, methods) == 20, "layout");
_Static_assert(offsetof(stile_http_rule, path) == 28, "layout");
_Static_assert(offsetof(stile_http_rule, headers) == 36, "layout");
_Static_assert(sizeof(stile_http_stage) == 16, "layout");
_Static_assert(offsetof(stile_http_stage, value) == 8, "layout");
_Static_assert(sizeof(stile_http_part) == 16, "layout");
_Static_assert(offsetof(stile_http_part, offset) == 0, "layout");
_Static_assert(offsetof(stile_http_part, len) == 8, "layout");
__attribute__((import_module("stile:capability/http@0.1.0"), import_name("[resource-drop]client")))
extern void stile_import_65(uint32_t);
void stile_http_client_drop(stile_http_client self) { stile_import_65(self.handle); }

__attribute__((import_module("stile:capability/http@0.1.0"), import_name("[resource-drop]exchange")))
extern void stile_import_66(uint32_t);
void stile_http_exchange_drop(stile_http_exchange self) { stile_import_66(self.handle); }

__attribute__((import_module("stile:capability/http@0.1.0"), import_name("[method]client.start")))
extern void stile_import_67(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_http_client_start(stile_http_client self, const stile_http_request *request, stile_http_exchange *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  uint32_t f5 = 0;
  uint32_t f6 = 0;
  uint32_t f7 = 0;
  uint32_t f8 = 0;
  uint32_t f9 = 0;
  uint32_t f10 = 0;
  uint32_t f11 = 0;
  uint32_t f12 = 0;
  uint32_t f13 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)(*request).method.data;
  f2 = (*request).method.len;
  f3 = (uint32_t)(uintptr_t)(*request).url.data;
  f4 = (*request).url.len;
  f5 = (uint32_t)(uintptr_t)(*request).headers.data;
  f6 = (*request).headers.len;
  f7 = (*request).content.tag;
  switch ((*request).content.tag) {
  case STILE_HTTP_CONTENT_TEXT:
  f8 = (uint32_t)(uintptr_t)(*request).content.value.text.data;
  f9 = (*request).content.value.text.len;
  break;
  case STILE_HTTP_CONTENT_BYTES:
  f8 = (uint32_t)(uintptr_t)(*request).content.value.bytes.data;
  f9 = (*request).content.value.bytes.len;
  break;
  case STILE_HTTP_CONTENT_BLOB:
  f8 = (*request).content.value.blob.handle;
  break;
  }
  f10 = (uint32_t)(*request).redirect;
  if ((*request).timeout.some) {
  f11 = 1;
  f12 = (uint32_t)(*request).timeout.value;
  }
  struct { bool failed; union { stile_http_exchange ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f13 = (uint32_t)(uintptr_t)&result;
  stile_import_67(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

_Static_assert(sizeof(stile_list_http_rule) == 8, "layout");
_Static_assert(offsetof(stile_list_http_rule, len) == 4, "layout");
_Static_assert(sizeof(stile_http_rule) == 44, "layout");
__attribute__((import_module("stile:capability/http@0.1.0"), import_name("[method]client.narrow")))
extern void stile_import_68(uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_http_client_narrow(stile_http_client self, stile_list_http_rule rules, stile_http_client *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)rules.data;
  f2 = rules.len;
  struct { bool failed; union { stile_http_client ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_68(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/http@0.1.0"), import_name("[method]client.rules")))
extern void stile_import_69(uint32_t, uint32_t);
stile_list_http_rule stile_http_client_rules(stile_http_client self) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  f0 = self.handle;
  stile_list_http_rule result;
  _Static_assert(sizeof result == 8, "layout");
  f1 = (uint32_t)(uintptr_t)&result;
  stile_import_69(f0, f1);
  return result;
}

__attribute__((import_module("stile:capability/http@0.1.0"), import_name("[method]exchange.subscribe")))
extern uint32_t stile_import_70(uint32_t, uint32_t, uint64_t);
stile_pollable stile_http_exchange_subscribe(stile_http_exchange self, const stile_http_stage *stage) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint64_t f2 = 0;
  f0 = self.handle;
  f1 = (*stage).tag;
  switch ((*stage).tag) {
  case STILE_HTTP_STAGE_BODY:
  f2 = (uint64_t)(*stage).value.body;
  break;
  }
  return (stile_pollable){stile_import_70(f0, f1, f2)};
}

__attribute__((import_module("stile:capability/http@0.1.0"), import_name("[method]exchange.head")))
extern void stile_import_71(uint32_t, uint32_t);
bool stile_http_exchange_head(stile_http_exchange self, stile_http_head *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  f0 = self.handle;
  struct { bool failed; union { stile_http_head ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f1 = (uint32_t)(uintptr_t)&result;
  stile_import_71(f0, f1);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/http@0.1.0"), import_name("[method]exchange.text")))
extern void stile_import_72(uint32_t, uint64_t, uint32_t);
bool stile_http_exchange_text(stile_http_exchange self, uint64_t max, stile_string *out, stile_error *error) {
  uint32_t f0 = 0;
  uint64_t f1 = 0;
  uint32_t f2 = 0;
  f0 = self.handle;
  f1 = (uint64_t)max;
  struct { bool failed; union { stile_string ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f2 = (uint32_t)(uintptr_t)&result;
  stile_import_72(f0, f1, f2);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

_Static_assert(sizeof(stile_option_http_part) == 24, "layout");
_Static_assert(offsetof(stile_option_http_part, value) == 8, "layout");
__attribute__((import_module("stile:capability/http@0.1.0"), import_name("[method]exchange.blob")))
extern void stile_import_73(uint32_t, uint32_t, uint64_t, uint32_t, uint32_t);
bool stile_http_exchange_blob(stile_http_exchange self, const stile_http_part *part, stile_blob *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint64_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  f0 = self.handle;
  if (part) {
  f1 = 1;
  f2 = (uint64_t)(*part).offset;
  f3 = (uint32_t)(*part).len;
  }
  struct { bool failed; union { stile_blob ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f4 = (uint32_t)(uintptr_t)&result;
  stile_import_73(f0, f1, f2, f3, f4);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/http@0.1.0"), import_name("get")))
extern void stile_import_74(uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_env_http(stile_env self, stile_string name, stile_http_client *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)name.data;
  f2 = name.len;
  struct { bool failed; union { stile_http_client ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_74(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/http@0.1.0"), import_name("put")))
extern void stile_import_75(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_env_put_http(stile_env self, stile_string name, stile_http_client client, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)name.data;
  f2 = name.len;
  f3 = client.handle;
  struct { bool failed; union { stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f4 = (uint32_t)(uintptr_t)&result;
  stile_import_75(f0, f1, f2, f3, f4);
  if (result.failed && error) *error = result.value.error;
  return !result.failed;
}

_Static_assert(sizeof(stile_kv_entry) == 16, "layout");
_Static_assert(offsetof(stile_kv_entry, key) == 0, "layout");
_Static_assert(offsetof(stile_kv_entry, value) == 8, "layout");
_Static_assert(sizeof(stile_list_kv_entry) == 8, "layout");
_Static_assert(offsetof(stile_list_kv_entry, len) == 4, "layout");
_Static_assert(sizeof(stile_kv_entry) == 16, "layout");
_Static_assert(sizeof(stile_kv_page) == 20, "layout");
_Static_assert(offsetof(stile_kv_page, entries) == 0, "layout");
_Static_assert(offsetof(stile_kv_page, cursor) == 8, "layout");
__attribute__((import_module("stile:capability/kv@0.1.0"), import_name("[resource-drop]bucket")))
extern void stile_import_76(uint32_t);
void stile_kv_bucket_drop(stile_kv_bucket self) { stile_import_76(self.handle); }

__attribute__((import_module("stile:capability/kv@0.1.0"), import_name("[method]bucket.get")))
extern void stile_import_77(uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_kv_bucket_get(stile_kv_bucket self, stile_string key, stile_option_string *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)key.data;
  f2 = key.len;
  struct { bool failed; union { stile_option_string ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_77(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/kv@0.1.0"), import_name("[method]bucket.set")))
extern void stile_import_78(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_kv_bucket_set(stile_kv_bucket self, stile_string key, stile_string value, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  uint32_t f5 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)key.data;
  f2 = key.len;
  f3 = (uint32_t)(uintptr_t)value.data;
  f4 = value.len;
  struct { bool failed; union { stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f5 = (uint32_t)(uintptr_t)&result;
  stile_import_78(f0, f1, f2, f3, f4, f5);
  if (result.failed && error) *error = result.value.error;
  return !result.failed;
}

__attribute__((import_module("stile:capability/kv@0.1.0"), import_name("[method]bucket.delete")))
extern void stile_import_79(uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_kv_bucket_delete(stile_kv_bucket self, stile_string key, bool *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)key.data;
  f2 = key.len;
  struct { bool failed; union { bool ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_79(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/kv@0.1.0"), import_name("[method]bucket.list")))
extern void stile_import_80(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_kv_bucket_list(stile_kv_bucket self, stile_string prefix, uint32_t limit, const stile_string *cursor, stile_kv_page *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  uint32_t f5 = 0;
  uint32_t f6 = 0;
  uint32_t f7 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)prefix.data;
  f2 = prefix.len;
  f3 = (uint32_t)limit;
  if (cursor) {
  f4 = 1;
  f5 = (uint32_t)(uintptr_t)(*cursor).data;
  f6 = (*cursor).len;
  }
  struct { bool failed; union { stile_kv_page ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f7 = (uint32_t)(uintptr_t)&result;
  stile_import_80(f0, f1, f2, f3, f4, f5, f6, f7);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/kv@0.1.0"), import_name("[method]bucket.increment")))
extern void stile_import_81(uint32_t, uint32_t, uint32_t, uint64_t, uint32_t);
bool stile_kv_bucket_increment(stile_kv_bucket self, stile_string key, int64_t delta, int64_t *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint64_t f3 = 0;
  uint32_t f4 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)key.data;
  f2 = key.len;
  f3 = (uint64_t)delta;
  struct { bool failed; union { int64_t ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f4 = (uint32_t)(uintptr_t)&result;
  stile_import_81(f0, f1, f2, f3, f4);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/kv@0.1.0"), import_name("[method]bucket.compare-and-set")))
extern void stile_import_82(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_kv_bucket_compare_and_set(stile_kv_bucket self, stile_string key, const stile_string *expected, const stile_string *value, bool *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  uint32_t f5 = 0;
  uint32_t f6 = 0;
  uint32_t f7 = 0;
  uint32_t f8 = 0;
  uint32_t f9 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)key.data;
  f2 = key.len;
  if (expected) {
  f3 = 1;
  f4 = (uint32_t)(uintptr_t)(*expected).data;
  f5 = (*expected).len;
  }
  if (value) {
  f6 = 1;
  f7 = (uint32_t)(uintptr_t)(*value).data;
  f8 = (*value).len;
  }
  struct { bool failed; union { bool ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f9 = (uint32_t)(uintptr_t)&result;
  stile_import_82(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/kv@0.1.0"), import_name("get")))
extern void stile_import_83(uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_env_kv(stile_env self, stile_string name, stile_kv_bucket *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)name.data;
  f2 = name.len;
  struct { bool failed; union { stile_kv_bucket ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_83(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/kv@0.1.0"), import_name("put")))
extern void stile_import_84(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_env_put_kv(stile_env self, stile_string name, stile_kv_bucket bucket, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)name.data;
  f2 = name.len;
  f3 = bucket.handle;
  struct { bool failed; union { stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f4 = (uint32_t)(uintptr_t)&result;
  stile_import_84(f0, f1, f2, f3, f4);
  if (result.failed && error) *error = result.value.error;
  return !result.failed;
}

__attribute__((import_module("stile:capability/random@0.1.0"), import_name("[resource-drop]random")))
extern void stile_import_85(uint32_t);
void stile_random_drop(stile_random self) { stile_import_85(self.handle); }

__attribute__((import_module("stile:capability/random@0.1.0"), import_name("[method]random.u64")))
extern uint64_t stile_import_86(uint32_t);
uint64_t stile_random_u64(stile_random self) {
  uint32_t f0 = 0;
  f0 = self.handle;
  return (uint64_t)stile_import_86(f0);
}

__attribute__((import_module("stile:capability/random@0.1.0"), import_name("[method]random.bytes")))
extern void stile_import_87(uint32_t, uint32_t, uint32_t);
bool stile_random_bytes(stile_random self, uint32_t length, stile_bytes *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  f0 = self.handle;
  f1 = (uint32_t)length;
  struct { bool failed; union { stile_bytes ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f2 = (uint32_t)(uintptr_t)&result;
  stile_import_87(f0, f1, f2);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/random@0.1.0"), import_name("get")))
extern void stile_import_88(uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_env_random(stile_env self, stile_string name, stile_random *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)name.data;
  f2 = name.len;
  struct { bool failed; union { stile_random ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_88(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/random@0.1.0"), import_name("put")))
extern void stile_import_89(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_env_put_random(stile_env self, stile_string name, stile_random random, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)name.data;
  f2 = name.len;
  f3 = random.handle;
  struct { bool failed; union { stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f4 = (uint32_t)(uintptr_t)&result;
  stile_import_89(f0, f1, f2, f3, f4);
  if (result.failed && error) *error = result.value.error;
  return !result.failed;
}

_Static_assert(sizeof(stile_runs_state) == 1, "layout");
_Static_assert(sizeof(stile_option_u64) == 16, "layout");
_Static_assert(offsetof(stile_option_u64, value) == 8, "layout");
_Static_assert(sizeof(stile_runs_status) == 56, "layout");
_Static_assert(offsetof(stile_runs_status, state) == 0, "layout");
_Static_assert(offsetof(stile_runs_status, since) == 8, "layout");
_Static_assert(offsetof(stile_runs_status, wakes) == 16, "layout");
_Static_assert(offsetof(stile_runs_status, mailboxes) == 32, "layout");
_Static_assert(offsetof(stile_runs_status, reason) == 40, "layout");
__attribute__((import_module("stile:capability/runs@0.1.0"), import_name("[resource-drop]control")))
extern void stile_import_90(uint32_t);
void stile_runs_control_drop(stile_runs_control self) { stile_import_90(self.handle); }

__attribute__((import_module("stile:capability/runs@0.1.0"), import_name("[resource-drop]awake")))
extern void stile_import_91(uint32_t);
void stile_runs_awake_drop(stile_runs_awake self) { stile_import_91(self.handle); }

__attribute__((import_module("stile:capability/runs@0.1.0"), import_name("[method]control.cancelled")))
extern void stile_import_92(uint32_t, uint32_t);
bool stile_runs_control_cancelled(stile_runs_control self, stile_pollable *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  f0 = self.handle;
  struct { bool failed; union { stile_pollable ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f1 = (uint32_t)(uintptr_t)&result;
  stile_import_92(f0, f1);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/runs@0.1.0"), import_name("[method]control.keep-awake")))
extern uint32_t stile_import_93(uint32_t);
stile_runs_awake stile_runs_control_keep_awake(stile_runs_control self) {
  uint32_t f0 = 0;
  f0 = self.handle;
  return (stile_runs_awake){stile_import_93(f0)};
}

__attribute__((import_module("stile:capability/runs@0.1.0"), import_name("[method]control.stash")))
extern void stile_import_94(uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_runs_control_stash(stile_runs_control self, stile_string value, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)value.data;
  f2 = value.len;
  struct { bool failed; union { stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_94(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  return !result.failed;
}

__attribute__((import_module("stile:capability/runs@0.1.0"), import_name("[method]control.recover")))
extern void stile_import_95(uint32_t, uint32_t);
bool stile_runs_control_recover(stile_runs_control self, stile_option_string *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  f0 = self.handle;
  struct { bool failed; union { stile_option_string ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f1 = (uint32_t)(uintptr_t)&result;
  stile_import_95(f0, f1);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/runs@0.1.0"), import_name("[method]control.start")))
extern void stile_import_96(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_runs_control_start(stile_runs_control self, stile_string tool, stile_string input, const stile_string *key, stile_string *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  uint32_t f5 = 0;
  uint32_t f6 = 0;
  uint32_t f7 = 0;
  uint32_t f8 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)tool.data;
  f2 = tool.len;
  f3 = (uint32_t)(uintptr_t)input.data;
  f4 = input.len;
  if (key) {
  f5 = 1;
  f6 = (uint32_t)(uintptr_t)(*key).data;
  f7 = (*key).len;
  }
  struct { bool failed; union { stile_string ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f8 = (uint32_t)(uintptr_t)&result;
  stile_import_96(f0, f1, f2, f3, f4, f5, f6, f7, f8);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/runs@0.1.0"), import_name("[method]control.ended")))
extern void stile_import_97(uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_runs_control_ended(stile_runs_control self, stile_string run, stile_pollable *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)run.data;
  f2 = run.len;
  struct { bool failed; union { stile_pollable ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_97(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/runs@0.1.0"), import_name("[method]control.outcome")))
extern void stile_import_98(uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_runs_control_outcome(stile_runs_control self, stile_string run, stile_string *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)run.data;
  f2 = run.len;
  struct { bool failed; union { stile_string ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_98(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/runs@0.1.0"), import_name("[method]control.status")))
extern void stile_import_99(uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_runs_control_status(stile_runs_control self, stile_string run, stile_runs_status *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)run.data;
  f2 = run.len;
  struct { bool failed; union { stile_runs_status ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 64, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_99(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/runs@0.1.0"), import_name("[method]control.signal")))
extern void stile_import_100(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_runs_control_signal(stile_runs_control self, stile_string run, stile_string mailbox, stile_string data, const stile_string *key, bool *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  uint32_t f5 = 0;
  uint32_t f6 = 0;
  uint32_t f7 = 0;
  uint32_t f8 = 0;
  uint32_t f9 = 0;
  uint32_t f10 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)run.data;
  f2 = run.len;
  f3 = (uint32_t)(uintptr_t)mailbox.data;
  f4 = mailbox.len;
  f5 = (uint32_t)(uintptr_t)data.data;
  f6 = data.len;
  if (key) {
  f7 = 1;
  f8 = (uint32_t)(uintptr_t)(*key).data;
  f9 = (*key).len;
  }
  struct { bool failed; union { bool ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f10 = (uint32_t)(uintptr_t)&result;
  stile_import_100(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/runs@0.1.0"), import_name("[method]control.cancel")))
extern void stile_import_101(uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_runs_control_cancel(stile_runs_control self, stile_string run, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)run.data;
  f2 = run.len;
  struct { bool failed; union { stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_101(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  return !result.failed;
}

__attribute__((import_module("stile:capability/runs@0.1.0"), import_name("get")))
extern void stile_import_102(uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_env_runs(stile_env self, stile_string name, stile_runs_control *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)name.data;
  f2 = name.len;
  struct { bool failed; union { stile_runs_control ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_102(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/runs@0.1.0"), import_name("put")))
extern void stile_import_103(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_env_put_runs(stile_env self, stile_string name, stile_runs_control control, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)name.data;
  f2 = name.len;
  f3 = control.handle;
  struct { bool failed; union { stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f4 = (uint32_t)(uintptr_t)&result;
  stile_import_103(f0, f1, f2, f3, f4);
  if (result.failed && error) *error = result.value.error;
  return !result.failed;
}

_Static_assert(sizeof(stile_workspace_kind) == 1, "layout");
_Static_assert(sizeof(stile_workspace_status) == 32, "layout");
_Static_assert(offsetof(stile_workspace_status, kind) == 0, "layout");
_Static_assert(offsetof(stile_workspace_status, size) == 8, "layout");
_Static_assert(offsetof(stile_workspace_status, modified) == 16, "layout");
_Static_assert(offsetof(stile_workspace_status, mode) == 24, "layout");
_Static_assert(sizeof(stile_workspace_entry) == 40, "layout");
_Static_assert(offsetof(stile_workspace_entry, name) == 0, "layout");
_Static_assert(offsetof(stile_workspace_entry, status) == 8, "layout");
_Static_assert(sizeof(stile_list_workspace_entry) == 8, "layout");
_Static_assert(offsetof(stile_list_workspace_entry, len) == 4, "layout");
_Static_assert(sizeof(stile_workspace_entry) == 40, "layout");
_Static_assert(sizeof(stile_workspace_page) == 20, "layout");
_Static_assert(offsetof(stile_workspace_page, entries) == 0, "layout");
_Static_assert(offsetof(stile_workspace_page, cursor) == 8, "layout");
_Static_assert(sizeof(stile_workspace_whole) == 32, "layout");
_Static_assert(offsetof(stile_workspace_whole, text) == 0, "layout");
_Static_assert(offsetof(stile_workspace_whole, digest) == 12, "layout");
_Static_assert(offsetof(stile_workspace_whole, size) == 24, "layout");
_Static_assert(sizeof(stile_workspace_replacement) == 16, "layout");
_Static_assert(offsetof(stile_workspace_replacement, old) == 0, "layout");
_Static_assert(offsetof(stile_workspace_replacement, new) == 8, "layout");
_Static_assert(sizeof(stile_workspace_found) == 20, "layout");
_Static_assert(offsetof(stile_workspace_found, paths) == 0, "layout");
_Static_assert(offsetof(stile_workspace_found, cursor) == 8, "layout");
_Static_assert(sizeof(stile_workspace_search) == 20, "layout");
_Static_assert(offsetof(stile_workspace_search, include) == 0, "layout");
_Static_assert(offsetof(stile_workspace_search, exclude) == 8, "layout");
_Static_assert(offsetof(stile_workspace_search, context) == 16, "layout");
_Static_assert(sizeof(stile_workspace_match) == 40, "layout");
_Static_assert(offsetof(stile_workspace_match, path) == 0, "layout");
_Static_assert(offsetof(stile_workspace_match, line) == 8, "layout");
_Static_assert(offsetof(stile_workspace_match, column) == 12, "layout");
_Static_assert(offsetof(stile_workspace_match, text) == 16, "layout");
_Static_assert(offsetof(stile_workspace_match, before) == 24, "layout");
_Static_assert(offsetof(stile_workspace_match, after) == 32, "layout");
_Static_assert(sizeof(stile_list_workspace_match) == 8, "layout");
_Static_assert(offsetof(stile_list_workspace_match, len) == 4, "layout");
_Static_assert(sizeof(stile_workspace_match) == 40, "layout");
_Static_assert(sizeof(stile_workspace_matches) == 24, "layout");
_Static_assert(offsetof(stile_workspace_matches, matches) == 0, "layout");
_Static_assert(offsetof(stile_workspace_matches, partial) == 8, "layout");
_Static_assert(offsetof(stile_workspace_matches, cursor) == 12, "layout");
_Static_assert(sizeof(stile_workspace_revision) == 24, "layout");
_Static_assert(offsetof(stile_workspace_revision, id) == 0, "layout");
_Static_assert(offsetof(stile_workspace_revision, size) == 8, "layout");
_Static_assert(offsetof(stile_workspace_revision, modified) == 16, "layout");
_Static_assert(sizeof(stile_workspace_snapshot) == 32, "layout");
_Static_assert(offsetof(stile_workspace_snapshot, id) == 0, "layout");
_Static_assert(offsetof(stile_workspace_snapshot, taken) == 8, "layout");
_Static_assert(offsetof(stile_workspace_snapshot, files) == 16, "layout");
_Static_assert(offsetof(stile_workspace_snapshot, bytes) == 24, "layout");
__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("[resource-drop]directory")))
extern void stile_import_104(uint32_t);
void stile_workspace_directory_drop(stile_workspace_directory self) { stile_import_104(self.handle); }

__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("[method]directory.read")))
extern void stile_import_105(uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_workspace_directory_read(stile_workspace_directory self, stile_string path, stile_string *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)path.data;
  f2 = path.len;
  struct { bool failed; union { stile_string ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_105(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("[method]directory.read-with-digest")))
extern void stile_import_106(uint32_t, uint32_t, uint32_t, uint64_t, uint32_t);
bool stile_workspace_directory_read_with_digest(stile_workspace_directory self, stile_string path, uint64_t max, stile_workspace_whole *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint64_t f3 = 0;
  uint32_t f4 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)path.data;
  f2 = path.len;
  f3 = (uint64_t)max;
  struct { bool failed; union { stile_workspace_whole ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f4 = (uint32_t)(uintptr_t)&result;
  stile_import_106(f0, f1, f2, f3, f4);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("[method]directory.read-lines")))
extern void stile_import_107(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_workspace_directory_read_lines(stile_workspace_directory self, stile_string path, uint32_t from, const uint32_t *to, stile_string *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  uint32_t f5 = 0;
  uint32_t f6 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)path.data;
  f2 = path.len;
  f3 = (uint32_t)from;
  if (to) {
  f4 = 1;
  f5 = (uint32_t)(*to);
  }
  struct { bool failed; union { stile_string ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f6 = (uint32_t)(uintptr_t)&result;
  stile_import_107(f0, f1, f2, f3, f4, f5, f6);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("[method]directory.read-bytes")))
extern void stile_import_108(uint32_t, uint32_t, uint32_t, uint64_t, uint32_t, uint32_t);
bool stile_workspace_directory_read_bytes(stile_workspace_directory self, stile_string path, uint64_t offset, uint32_t length, stile_bytes *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint64_t f3 = 0;
  uint32_t f4 = 0;
  uint32_t f5 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)path.data;
  f2 = path.len;
  f3 = (uint64_t)offset;
  f4 = (uint32_t)length;
  struct { bool failed; union { stile_bytes ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f5 = (uint32_t)(uintptr_t)&result;
  stile_import_108(f0, f1, f2, f3, f4, f5);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("[method]directory.read-blob")))
extern void stile_import_109(uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_workspace_directory_read_blob(stile_workspace_directory self, stile_string path, stile_blob *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)path.data;
  f2 = path.len;
  struct { bool failed; union { stile_blob ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_109(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("[method]directory.write")))
extern void stile_import_110(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_workspace_directory_write(stile_workspace_directory self, stile_string path, stile_string text, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  uint32_t f5 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)path.data;
  f2 = path.len;
  f3 = (uint32_t)(uintptr_t)text.data;
  f4 = text.len;
  struct { bool failed; union { stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f5 = (uint32_t)(uintptr_t)&result;
  stile_import_110(f0, f1, f2, f3, f4, f5);
  if (result.failed && error) *error = result.value.error;
  return !result.failed;
}

__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("[method]directory.write-bytes")))
extern void stile_import_111(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_workspace_directory_write_bytes(stile_workspace_directory self, stile_string path, stile_bytes bytes, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  uint32_t f5 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)path.data;
  f2 = path.len;
  f3 = (uint32_t)(uintptr_t)bytes.data;
  f4 = bytes.len;
  struct { bool failed; union { stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f5 = (uint32_t)(uintptr_t)&result;
  stile_import_111(f0, f1, f2, f3, f4, f5);
  if (result.failed && error) *error = result.value.error;
  return !result.failed;
}

__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("[method]directory.write-blob")))
extern void stile_import_112(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_workspace_directory_write_blob(stile_workspace_directory self, stile_string path, stile_blob source, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)path.data;
  f2 = path.len;
  f3 = source.handle;
  struct { bool failed; union { stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f4 = (uint32_t)(uintptr_t)&result;
  stile_import_112(f0, f1, f2, f3, f4);
  if (result.failed && error) *error = result.value.error;
  return !result.failed;
}

__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("[method]directory.replace")))
extern void stile_import_113(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_workspace_directory_replace(stile_workspace_directory self, stile_string path, stile_string text, const stile_string *digest, stile_string *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  uint32_t f5 = 0;
  uint32_t f6 = 0;
  uint32_t f7 = 0;
  uint32_t f8 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)path.data;
  f2 = path.len;
  f3 = (uint32_t)(uintptr_t)text.data;
  f4 = text.len;
  if (digest) {
  f5 = 1;
  f6 = (uint32_t)(uintptr_t)(*digest).data;
  f7 = (*digest).len;
  }
  struct { bool failed; union { stile_string ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f8 = (uint32_t)(uintptr_t)&result;
  stile_import_113(f0, f1, f2, f3, f4, f5, f6, f7, f8);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("[method]directory.append")))
extern void stile_import_114(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_workspace_directory_append(stile_workspace_directory self, stile_string path, stile_string text, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  uint32_t f5 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)path.data;
  f2 = path.len;
  f3 = (uint32_t)(uintptr_t)text.data;
  f4 = text.len;
  struct { bool failed; union { stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f5 = (uint32_t)(uintptr_t)&result;
  stile_import_114(f0, f1, f2, f3, f4, f5);
  if (result.failed && error) *error = result.value.error;
  return !result.failed;
}

__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("[method]directory.append-bytes")))
extern void stile_import_115(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_workspace_directory_append_bytes(stile_workspace_directory self, stile_string path, stile_bytes bytes, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  uint32_t f5 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)path.data;
  f2 = path.len;
  f3 = (uint32_t)(uintptr_t)bytes.data;
  f4 = bytes.len;
  struct { bool failed; union { stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f5 = (uint32_t)(uintptr_t)&result;
  stile_import_115(f0, f1, f2, f3, f4, f5);
  if (result.failed && error) *error = result.value.error;
  return !result.failed;
}

_Static_assert(sizeof(stile_list_workspace_replacement) == 8, "layout");
_Static_assert(offsetof(stile_list_workspace_replacement, len) == 4, "layout");
_Static_assert(sizeof(stile_workspace_replacement) == 16, "layout");
__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("[method]directory.edit")))
extern void stile_import_116(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_workspace_directory_edit(stile_workspace_directory self, stile_string path, stile_list_workspace_replacement replacements, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  uint32_t f5 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)path.data;
  f2 = path.len;
  f3 = (uint32_t)(uintptr_t)replacements.data;
  f4 = replacements.len;
  struct { bool failed; union { stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f5 = (uint32_t)(uintptr_t)&result;
  stile_import_116(f0, f1, f2, f3, f4, f5);
  if (result.failed && error) *error = result.value.error;
  return !result.failed;
}

__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("[method]directory.list")))
extern void stile_import_117(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_workspace_directory_list(stile_workspace_directory self, stile_string path, uint32_t limit, const stile_string *cursor, stile_workspace_page *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  uint32_t f5 = 0;
  uint32_t f6 = 0;
  uint32_t f7 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)path.data;
  f2 = path.len;
  f3 = (uint32_t)limit;
  if (cursor) {
  f4 = 1;
  f5 = (uint32_t)(uintptr_t)(*cursor).data;
  f6 = (*cursor).len;
  }
  struct { bool failed; union { stile_workspace_page ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f7 = (uint32_t)(uintptr_t)&result;
  stile_import_117(f0, f1, f2, f3, f4, f5, f6, f7);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("[method]directory.find")))
extern void stile_import_118(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_workspace_directory_find(stile_workspace_directory self, stile_string glob, uint32_t limit, const stile_string *cursor, stile_workspace_found *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  uint32_t f5 = 0;
  uint32_t f6 = 0;
  uint32_t f7 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)glob.data;
  f2 = glob.len;
  f3 = (uint32_t)limit;
  if (cursor) {
  f4 = 1;
  f5 = (uint32_t)(uintptr_t)(*cursor).data;
  f6 = (*cursor).len;
  }
  struct { bool failed; union { stile_workspace_found ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f7 = (uint32_t)(uintptr_t)&result;
  stile_import_118(f0, f1, f2, f3, f4, f5, f6, f7);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("[method]directory.grep")))
extern void stile_import_119(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_workspace_directory_grep(stile_workspace_directory self, stile_string pattern, const stile_workspace_search *search, uint32_t limit, const stile_string *cursor, stile_workspace_matches *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  uint32_t f5 = 0;
  uint32_t f6 = 0;
  uint32_t f7 = 0;
  uint32_t f8 = 0;
  uint32_t f9 = 0;
  uint32_t f10 = 0;
  uint32_t f11 = 0;
  uint32_t f12 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)pattern.data;
  f2 = pattern.len;
  f3 = (uint32_t)(uintptr_t)(*search).include.data;
  f4 = (*search).include.len;
  f5 = (uint32_t)(uintptr_t)(*search).exclude.data;
  f6 = (*search).exclude.len;
  f7 = (uint32_t)(*search).context;
  f8 = (uint32_t)limit;
  if (cursor) {
  f9 = 1;
  f10 = (uint32_t)(uintptr_t)(*cursor).data;
  f11 = (*cursor).len;
  }
  struct { bool failed; union { stile_workspace_matches ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f12 = (uint32_t)(uintptr_t)&result;
  stile_import_119(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("[method]directory.diff")))
extern void stile_import_120(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_workspace_directory_diff(stile_workspace_directory self, stile_string before, stile_string after, stile_string *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  uint32_t f5 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)before.data;
  f2 = before.len;
  f3 = (uint32_t)(uintptr_t)after.data;
  f4 = after.len;
  struct { bool failed; union { stile_string ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f5 = (uint32_t)(uintptr_t)&result;
  stile_import_120(f0, f1, f2, f3, f4, f5);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("[method]directory.diff-revision")))
extern void stile_import_121(uint32_t, uint32_t, uint32_t, uint64_t, uint32_t);
bool stile_workspace_directory_diff_revision(stile_workspace_directory self, stile_string path, uint64_t revision, stile_string *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint64_t f3 = 0;
  uint32_t f4 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)path.data;
  f2 = path.len;
  f3 = (uint64_t)revision;
  struct { bool failed; union { stile_string ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f4 = (uint32_t)(uintptr_t)&result;
  stile_import_121(f0, f1, f2, f3, f4);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("[method]directory.stat")))
extern void stile_import_122(uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_workspace_directory_stat(stile_workspace_directory self, stile_string path, stile_workspace_status *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)path.data;
  f2 = path.len;
  struct { bool failed; union { stile_workspace_status ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_122(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("[method]directory.set-mode")))
extern void stile_import_123(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_workspace_directory_set_mode(stile_workspace_directory self, stile_string path, uint32_t mode, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)path.data;
  f2 = path.len;
  f3 = (uint32_t)mode;
  struct { bool failed; union { stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f4 = (uint32_t)(uintptr_t)&result;
  stile_import_123(f0, f1, f2, f3, f4);
  if (result.failed && error) *error = result.value.error;
  return !result.failed;
}

__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("[method]directory.make-link")))
extern void stile_import_124(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_workspace_directory_make_link(stile_workspace_directory self, stile_string path, stile_string target, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  uint32_t f5 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)path.data;
  f2 = path.len;
  f3 = (uint32_t)(uintptr_t)target.data;
  f4 = target.len;
  struct { bool failed; union { stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f5 = (uint32_t)(uintptr_t)&result;
  stile_import_124(f0, f1, f2, f3, f4, f5);
  if (result.failed && error) *error = result.value.error;
  return !result.failed;
}

__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("[method]directory.read-link")))
extern void stile_import_125(uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_workspace_directory_read_link(stile_workspace_directory self, stile_string path, stile_string *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)path.data;
  f2 = path.len;
  struct { bool failed; union { stile_string ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_125(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("[method]directory.make-directory")))
extern void stile_import_126(uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_workspace_directory_make_directory(stile_workspace_directory self, stile_string path, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)path.data;
  f2 = path.len;
  struct { bool failed; union { stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_126(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  return !result.failed;
}

__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("[method]directory.move")))
extern void stile_import_127(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_workspace_directory_move(stile_workspace_directory self, stile_string source, stile_string target, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  uint32_t f5 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)source.data;
  f2 = source.len;
  f3 = (uint32_t)(uintptr_t)target.data;
  f4 = target.len;
  struct { bool failed; union { stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f5 = (uint32_t)(uintptr_t)&result;
  stile_import_127(f0, f1, f2, f3, f4, f5);
  if (result.failed && error) *error = result.value.error;
  return !result.failed;
}

__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("[method]directory.copy")))
extern void stile_import_128(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_workspace_directory_copy(stile_workspace_directory self, stile_string source, stile_string target, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  uint32_t f5 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)source.data;
  f2 = source.len;
  f3 = (uint32_t)(uintptr_t)target.data;
  f4 = target.len;
  struct { bool failed; union { stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f5 = (uint32_t)(uintptr_t)&result;
  stile_import_128(f0, f1, f2, f3, f4, f5);
  if (result.failed && error) *error = result.value.error;
  return !result.failed;
}

__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("[method]directory.remove")))
extern void stile_import_129(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_workspace_directory_remove(stile_workspace_directory self, stile_string path, bool recursive, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)path.data;
  f2 = path.len;
  f3 = (uint32_t)recursive;
  struct { bool failed; union { stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f4 = (uint32_t)(uintptr_t)&result;
  stile_import_129(f0, f1, f2, f3, f4);
  if (result.failed && error) *error = result.value.error;
  return !result.failed;
}

_Static_assert(sizeof(stile_list_workspace_revision) == 8, "layout");
_Static_assert(offsetof(stile_list_workspace_revision, len) == 4, "layout");
_Static_assert(sizeof(stile_workspace_revision) == 24, "layout");
__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("[method]directory.history")))
extern void stile_import_130(uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_workspace_directory_history(stile_workspace_directory self, stile_string path, stile_list_workspace_revision *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)path.data;
  f2 = path.len;
  struct { bool failed; union { stile_list_workspace_revision ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_130(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("[method]directory.read-revision")))
extern void stile_import_131(uint32_t, uint32_t, uint32_t, uint64_t, uint32_t);
bool stile_workspace_directory_read_revision(stile_workspace_directory self, stile_string path, uint64_t revision, stile_blob *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint64_t f3 = 0;
  uint32_t f4 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)path.data;
  f2 = path.len;
  f3 = (uint64_t)revision;
  struct { bool failed; union { stile_blob ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f4 = (uint32_t)(uintptr_t)&result;
  stile_import_131(f0, f1, f2, f3, f4);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("[method]directory.restore")))
extern void stile_import_132(uint32_t, uint32_t, uint32_t, uint64_t, uint32_t);
bool stile_workspace_directory_restore(stile_workspace_directory self, stile_string path, uint64_t revision, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint64_t f3 = 0;
  uint32_t f4 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)path.data;
  f2 = path.len;
  f3 = (uint64_t)revision;
  struct { bool failed; union { stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f4 = (uint32_t)(uintptr_t)&result;
  stile_import_132(f0, f1, f2, f3, f4);
  if (result.failed && error) *error = result.value.error;
  return !result.failed;
}

__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("[method]directory.snapshot")))
extern void stile_import_133(uint32_t, uint32_t);
bool stile_workspace_directory_snapshot(stile_workspace_directory self, uint64_t *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  f0 = self.handle;
  struct { bool failed; union { uint64_t ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f1 = (uint32_t)(uintptr_t)&result;
  stile_import_133(f0, f1);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

_Static_assert(sizeof(stile_list_workspace_snapshot) == 8, "layout");
_Static_assert(offsetof(stile_list_workspace_snapshot, len) == 4, "layout");
_Static_assert(sizeof(stile_workspace_snapshot) == 32, "layout");
__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("[method]directory.snapshots")))
extern void stile_import_134(uint32_t, uint32_t);
bool stile_workspace_directory_snapshots(stile_workspace_directory self, stile_list_workspace_snapshot *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  f0 = self.handle;
  struct { bool failed; union { stile_list_workspace_snapshot ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f1 = (uint32_t)(uintptr_t)&result;
  stile_import_134(f0, f1);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("[method]directory.restore-snapshot")))
extern void stile_import_135(uint32_t, uint64_t, uint32_t);
bool stile_workspace_directory_restore_snapshot(stile_workspace_directory self, uint64_t id, stile_error *error) {
  uint32_t f0 = 0;
  uint64_t f1 = 0;
  uint32_t f2 = 0;
  f0 = self.handle;
  f1 = (uint64_t)id;
  struct { bool failed; union { stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f2 = (uint32_t)(uintptr_t)&result;
  stile_import_135(f0, f1, f2);
  if (result.failed && error) *error = result.value.error;
  return !result.failed;
}

__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("[method]directory.remove-snapshot")))
extern void stile_import_136(uint32_t, uint64_t, uint32_t);
bool stile_workspace_directory_remove_snapshot(stile_workspace_directory self, uint64_t id, stile_error *error) {
  uint32_t f0 = 0;
  uint64_t f1 = 0;
  uint32_t f2 = 0;
  f0 = self.handle;
  f1 = (uint64_t)id;
  struct { bool failed; union { stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f2 = (uint32_t)(uintptr_t)&result;
  stile_import_136(f0, f1, f2);
  if (result.failed && error) *error = result.value.error;
  return !result.failed;
}

__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("[method]directory.subdirectory")))
extern void stile_import_137(uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_workspace_directory_subdirectory(stile_workspace_directory self, stile_string path, stile_workspace_directory *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)path.data;
  f2 = path.len;
  struct { bool failed; union { stile_workspace_directory ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_137(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("[method]directory.read-only")))
extern void stile_import_138(uint32_t, uint32_t);
bool stile_workspace_directory_read_only(stile_workspace_directory self, stile_workspace_directory *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  f0 = self.handle;
  struct { bool failed; union { stile_workspace_directory ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f1 = (uint32_t)(uintptr_t)&result;
  stile_import_138(f0, f1);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("get")))
extern void stile_import_139(uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_env_workspace(stile_env self, stile_string name, stile_workspace_directory *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)name.data;
  f2 = name.len;
  struct { bool failed; union { stile_workspace_directory ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_139(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/workspace@0.1.0"), import_name("put")))
extern void stile_import_140(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_env_put_workspace(stile_env self, stile_string name, stile_workspace_directory directory, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)name.data;
  f2 = name.len;
  f3 = directory.handle;
  struct { bool failed; union { stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f4 = (uint32_t)(uintptr_t)&result;
  stile_import_140(f0, f1, f2, f3, f4);
  if (result.failed && error) *error = result.value.error;
  return !result.failed;
}

_Static_assert(sizeof(stile_sandbox_input) == 12, "layout");
_Static_assert(offsetof(stile_sandbox_input, value) == 4, "layout");
_Static_assert(sizeof(stile_sandbox_variable) == 16, "layout");
_Static_assert(offsetof(stile_sandbox_variable, name) == 0, "layout");
_Static_assert(offsetof(stile_sandbox_variable, value) == 8, "layout");
_Static_assert(sizeof(stile_list_sandbox_variable) == 8, "layout");
_Static_assert(offsetof(stile_list_sandbox_variable, len) == 4, "layout");
_Static_assert(sizeof(stile_sandbox_variable) == 16, "layout");
_Static_assert(sizeof(stile_sandbox_command) == 44, "layout");
_Static_assert(offsetof(stile_sandbox_command, argv) == 0, "layout");
_Static_assert(offsetof(stile_sandbox_command, folder) == 8, "layout");
_Static_assert(offsetof(stile_sandbox_command, env) == 16, "layout");
_Static_assert(offsetof(stile_sandbox_command, stdin) == 24, "layout");
_Static_assert(offsetof(stile_sandbox_command, timeout) == 36, "layout");
_Static_assert(sizeof(stile_sandbox_stream) == 1, "layout");
_Static_assert(sizeof(stile_sandbox_part) == 24, "layout");
_Static_assert(offsetof(stile_sandbox_part, offset) == 0, "layout");
_Static_assert(offsetof(stile_sandbox_part, stream) == 8, "layout");
_Static_assert(offsetof(stile_sandbox_part, bytes) == 12, "layout");
_Static_assert(sizeof(stile_sandbox_ending) == 1, "layout");
_Static_assert(sizeof(stile_sandbox_exit) == 16, "layout");
_Static_assert(offsetof(stile_sandbox_exit, code) == 0, "layout");
_Static_assert(offsetof(stile_sandbox_exit, ending) == 4, "layout");
_Static_assert(offsetof(stile_sandbox_exit, dropped) == 8, "layout");
_Static_assert(sizeof(stile_sandbox_stage) == 16, "layout");
_Static_assert(offsetof(stile_sandbox_stage, value) == 8, "layout");
_Static_assert(sizeof(stile_sandbox_note) == 16, "layout");
_Static_assert(offsetof(stile_sandbox_note, path) == 0, "layout");
_Static_assert(offsetof(stile_sandbox_note, reason) == 8, "layout");
_Static_assert(sizeof(stile_list_sandbox_note) == 8, "layout");
_Static_assert(offsetof(stile_list_sandbox_note, len) == 4, "layout");
_Static_assert(sizeof(stile_sandbox_note) == 16, "layout");
_Static_assert(sizeof(stile_sandbox_changes) == 44, "layout");
_Static_assert(offsetof(stile_sandbox_changes, added) == 0, "layout");
_Static_assert(offsetof(stile_sandbox_changes, changed) == 8, "layout");
_Static_assert(offsetof(stile_sandbox_changes, removed) == 16, "layout");
_Static_assert(offsetof(stile_sandbox_changes, conflicts) == 24, "layout");
_Static_assert(offsetof(stile_sandbox_changes, skipped) == 32, "layout");
_Static_assert(offsetof(stile_sandbox_changes, omitted) == 40, "layout");
__attribute__((import_module("stile:capability/sandbox@0.1.0"), import_name("[resource-drop]container")))
extern void stile_import_141(uint32_t);
void stile_sandbox_container_drop(stile_sandbox_container self) { stile_import_141(self.handle); }

__attribute__((import_module("stile:capability/sandbox@0.1.0"), import_name("[resource-drop]process")))
extern void stile_import_142(uint32_t);
void stile_sandbox_process_drop(stile_sandbox_process self) { stile_import_142(self.handle); }

__attribute__((import_module("stile:capability/sandbox@0.1.0"), import_name("[resource-drop]transfer")))
extern void stile_import_143(uint32_t);
void stile_sandbox_transfer_drop(stile_sandbox_transfer self) { stile_import_143(self.handle); }

__attribute__((import_module("stile:capability/sandbox@0.1.0"), import_name("[method]container.start")))
extern void stile_import_144(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_sandbox_container_start(stile_sandbox_container self, const stile_sandbox_command *command, stile_sandbox_process *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  uint32_t f5 = 0;
  uint32_t f6 = 0;
  uint32_t f7 = 0;
  uint32_t f8 = 0;
  uint32_t f9 = 0;
  uint32_t f10 = 0;
  uint32_t f11 = 0;
  uint32_t f12 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)(*command).argv.data;
  f2 = (*command).argv.len;
  f3 = (uint32_t)(uintptr_t)(*command).folder.data;
  f4 = (*command).folder.len;
  f5 = (uint32_t)(uintptr_t)(*command).env.data;
  f6 = (*command).env.len;
  f7 = (*command).stdin.tag;
  switch ((*command).stdin.tag) {
  case STILE_SANDBOX_INPUT_TEXT:
  f8 = (uint32_t)(uintptr_t)(*command).stdin.value.text.data;
  f9 = (*command).stdin.value.text.len;
  break;
  case STILE_SANDBOX_INPUT_BLOB:
  f8 = (*command).stdin.value.blob.handle;
  break;
  }
  if ((*command).timeout.some) {
  f10 = 1;
  f11 = (uint32_t)(*command).timeout.value;
  }
  struct { bool failed; union { stile_sandbox_process ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f12 = (uint32_t)(uintptr_t)&result;
  stile_import_144(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/sandbox@0.1.0"), import_name("[method]container.push")))
extern void stile_import_145(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_sandbox_container_push(stile_sandbox_container self, stile_workspace_directory directory, stile_string to, stile_sandbox_transfer *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  f0 = self.handle;
  f1 = directory.handle;
  f2 = (uint32_t)(uintptr_t)to.data;
  f3 = to.len;
  struct { bool failed; union { stile_sandbox_transfer ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f4 = (uint32_t)(uintptr_t)&result;
  stile_import_145(f0, f1, f2, f3, f4);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/sandbox@0.1.0"), import_name("[method]container.pull")))
extern void stile_import_146(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_sandbox_container_pull(stile_sandbox_container self, stile_workspace_directory directory, stile_string from, stile_sandbox_transfer *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  f0 = self.handle;
  f1 = directory.handle;
  f2 = (uint32_t)(uintptr_t)from.data;
  f3 = from.len;
  struct { bool failed; union { stile_sandbox_transfer ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f4 = (uint32_t)(uintptr_t)&result;
  stile_import_146(f0, f1, f2, f3, f4);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/sandbox@0.1.0"), import_name("[method]container.limits")))
extern void stile_import_147(uint32_t, uint32_t);
bool stile_sandbox_container_limits(stile_sandbox_container self, stile_list_sandbox_note *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  f0 = self.handle;
  struct { bool failed; union { stile_list_sandbox_note ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f1 = (uint32_t)(uintptr_t)&result;
  stile_import_147(f0, f1);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/sandbox@0.1.0"), import_name("[method]process.subscribe")))
extern uint32_t stile_import_148(uint32_t, uint32_t, uint64_t);
stile_pollable stile_sandbox_process_subscribe(stile_sandbox_process self, const stile_sandbox_stage *stage) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint64_t f2 = 0;
  f0 = self.handle;
  f1 = (*stage).tag;
  switch ((*stage).tag) {
  case STILE_SANDBOX_STAGE_OUTPUT:
  f2 = (uint64_t)(*stage).value.output;
  break;
  }
  return (stile_pollable){stile_import_148(f0, f1, f2)};
}

_Static_assert(sizeof(stile_option_sandbox_part) == 32, "layout");
_Static_assert(offsetof(stile_option_sandbox_part, value) == 8, "layout");
__attribute__((import_module("stile:capability/sandbox@0.1.0"), import_name("[method]process.read")))
extern void stile_import_149(uint32_t, uint64_t, uint32_t);
bool stile_sandbox_process_read(stile_sandbox_process self, uint64_t offset, stile_option_sandbox_part *out, stile_error *error) {
  uint32_t f0 = 0;
  uint64_t f1 = 0;
  uint32_t f2 = 0;
  f0 = self.handle;
  f1 = (uint64_t)offset;
  struct { bool failed; union { stile_option_sandbox_part ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f2 = (uint32_t)(uintptr_t)&result;
  stile_import_149(f0, f1, f2);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/sandbox@0.1.0"), import_name("[method]process.take")))
extern void stile_import_150(uint32_t, uint32_t);
bool stile_sandbox_process_take(stile_sandbox_process self, stile_sandbox_exit *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  f0 = self.handle;
  struct { bool failed; union { stile_sandbox_exit ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f1 = (uint32_t)(uintptr_t)&result;
  stile_import_150(f0, f1);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/sandbox@0.1.0"), import_name("[method]process.stop")))
extern void stile_import_151(uint32_t);
void stile_sandbox_process_stop(stile_sandbox_process self) {
  uint32_t f0 = 0;
  f0 = self.handle;
  stile_import_151(f0);
}

__attribute__((import_module("stile:capability/sandbox@0.1.0"), import_name("[method]transfer.subscribe")))
extern uint32_t stile_import_152(uint32_t);
stile_pollable stile_sandbox_transfer_subscribe(stile_sandbox_transfer self) {
  uint32_t f0 = 0;
  f0 = self.handle;
  return (stile_pollable){stile_import_152(f0)};
}

__attribute__((import_module("stile:capability/sandbox@0.1.0"), import_name("[method]transfer.take")))
extern void stile_import_153(uint32_t, uint32_t);
bool stile_sandbox_transfer_take(stile_sandbox_transfer self, stile_sandbox_changes *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  f0 = self.handle;
  struct { bool failed; union { stile_sandbox_changes ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 56, "layout");
  f1 = (uint32_t)(uintptr_t)&result;
  stile_import_153(f0, f1);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/sandbox@0.1.0"), import_name("get")))
extern void stile_import_154(uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_env_sandbox(stile_env self, stile_string name, stile_sandbox_container *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)name.data;
  f2 = name.len;
  struct { bool failed; union { stile_sandbox_container ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_154(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/sandbox@0.1.0"), import_name("put")))
extern void stile_import_155(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_env_put_sandbox(stile_env self, stile_string name, stile_sandbox_container container, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)name.data;
  f2 = name.len;
  f3 = container.handle;
  struct { bool failed; union { stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f4 = (uint32_t)(uintptr_t)&result;
  stile_import_155(f0, f1, f2, f3, f4);
  if (result.failed && error) *error = result.value.error;
  return !result.failed;
}

_Static_assert(sizeof(stile_signals_message) == 24, "layout");
_Static_assert(offsetof(stile_signals_message, data) == 0, "layout");
_Static_assert(offsetof(stile_signals_message, from) == 8, "layout");
_Static_assert(offsetof(stile_signals_message, received) == 16, "layout");
__attribute__((import_module("stile:capability/signals@0.1.0"), import_name("[resource-drop]mailboxes")))
extern void stile_import_156(uint32_t);
void stile_signals_mailboxes_drop(stile_signals_mailboxes self) { stile_import_156(self.handle); }

__attribute__((import_module("stile:capability/signals@0.1.0"), import_name("[resource-drop]pending")))
extern void stile_import_157(uint32_t);
void stile_signals_pending_drop(stile_signals_pending self) { stile_import_157(self.handle); }

__attribute__((import_module("stile:capability/signals@0.1.0"), import_name("[method]mailboxes.receive")))
extern void stile_import_158(uint32_t, uint32_t, uint32_t, uint32_t, uint64_t, uint32_t);
bool stile_signals_mailboxes_receive(stile_signals_mailboxes self, stile_string mailbox, const uint64_t *milliseconds, stile_signals_pending *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint64_t f4 = 0;
  uint32_t f5 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)mailbox.data;
  f2 = mailbox.len;
  if (milliseconds) {
  f3 = 1;
  f4 = (uint64_t)(*milliseconds);
  }
  struct { bool failed; union { stile_signals_pending ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f5 = (uint32_t)(uintptr_t)&result;
  stile_import_158(f0, f1, f2, f3, f4, f5);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/signals@0.1.0"), import_name("[method]mailboxes.url")))
extern void stile_import_159(uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_signals_mailboxes_url(stile_signals_mailboxes self, stile_string mailbox, stile_string *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)mailbox.data;
  f2 = mailbox.len;
  struct { bool failed; union { stile_string ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_159(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/signals@0.1.0"), import_name("[method]pending.subscribe")))
extern uint32_t stile_import_160(uint32_t);
stile_pollable stile_signals_pending_subscribe(stile_signals_pending self) {
  uint32_t f0 = 0;
  f0 = self.handle;
  return (stile_pollable){stile_import_160(f0)};
}

_Static_assert(sizeof(stile_option_signals_message) == 32, "layout");
_Static_assert(offsetof(stile_option_signals_message, value) == 8, "layout");
__attribute__((import_module("stile:capability/signals@0.1.0"), import_name("[method]pending.take")))
extern void stile_import_161(uint32_t, uint32_t);
bool stile_signals_pending_take(stile_signals_pending self, stile_option_signals_message *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  f0 = self.handle;
  struct { bool failed; union { stile_option_signals_message ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f1 = (uint32_t)(uintptr_t)&result;
  stile_import_161(f0, f1);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/signals@0.1.0"), import_name("get")))
extern void stile_import_162(uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_env_signals(stile_env self, stile_string name, stile_signals_mailboxes *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)name.data;
  f2 = name.len;
  struct { bool failed; union { stile_signals_mailboxes ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_162(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/signals@0.1.0"), import_name("put")))
extern void stile_import_163(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_env_put_signals(stile_env self, stile_string name, stile_signals_mailboxes mailboxes, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)name.data;
  f2 = name.len;
  f3 = mailboxes.handle;
  struct { bool failed; union { stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f4 = (uint32_t)(uintptr_t)&result;
  stile_import_163(f0, f1, f2, f3, f4);
  if (result.failed && error) *error = result.value.error;
  return !result.failed;
}

_Static_assert(sizeof(stile_tools_description) == 24, "layout");
_Static_assert(offsetof(stile_tools_description, name) == 0, "layout");
_Static_assert(offsetof(stile_tools_description, description) == 8, "layout");
_Static_assert(offsetof(stile_tools_description, input_schema) == 16, "layout");
__attribute__((import_module("stile:capability/tools@0.1.0"), import_name("[resource-drop]toolbox")))
extern void stile_import_164(uint32_t);
void stile_tools_toolbox_drop(stile_tools_toolbox self) { stile_import_164(self.handle); }

__attribute__((import_module("stile:capability/tools@0.1.0"), import_name("[resource-drop]pending")))
extern void stile_import_165(uint32_t);
void stile_tools_pending_drop(stile_tools_pending self) { stile_import_165(self.handle); }

_Static_assert(sizeof(stile_list_tools_description) == 8, "layout");
_Static_assert(offsetof(stile_list_tools_description, len) == 4, "layout");
_Static_assert(sizeof(stile_tools_description) == 24, "layout");
__attribute__((import_module("stile:capability/tools@0.1.0"), import_name("[method]toolbox.search")))
extern void stile_import_166(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
stile_list_tools_description stile_tools_toolbox_search(stile_tools_toolbox self, stile_string query, uint32_t limit) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)query.data;
  f2 = query.len;
  f3 = (uint32_t)limit;
  stile_list_tools_description result;
  _Static_assert(sizeof result == 8, "layout");
  f4 = (uint32_t)(uintptr_t)&result;
  stile_import_166(f0, f1, f2, f3, f4);
  return result;
}

__attribute__((import_module("stile:capability/tools@0.1.0"), import_name("[method]toolbox.describe")))
extern void stile_import_167(uint32_t, uint32_t, uint32_t, uint32_t);
stile_string stile_tools_toolbox_describe(stile_tools_toolbox self, stile_list_string names) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)names.data;
  f2 = names.len;
  stile_string result;
  _Static_assert(sizeof result == 8, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_167(f0, f1, f2, f3);
  return result;
}

__attribute__((import_module("stile:capability/tools@0.1.0"), import_name("[method]toolbox.start")))
extern void stile_import_168(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_tools_toolbox_start(stile_tools_toolbox self, stile_string tool, stile_string input, stile_env env, stile_tools_pending *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  uint32_t f5 = 0;
  uint32_t f6 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)tool.data;
  f2 = tool.len;
  f3 = (uint32_t)(uintptr_t)input.data;
  f4 = input.len;
  f5 = env.handle;
  struct { bool failed; union { stile_tools_pending ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f6 = (uint32_t)(uintptr_t)&result;
  stile_import_168(f0, f1, f2, f3, f4, f5, f6);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/tools@0.1.0"), import_name("[method]pending.subscribe")))
extern uint32_t stile_import_169(uint32_t);
stile_pollable stile_tools_pending_subscribe(stile_tools_pending self) {
  uint32_t f0 = 0;
  f0 = self.handle;
  return (stile_pollable){stile_import_169(f0)};
}

__attribute__((import_module("stile:capability/tools@0.1.0"), import_name("[method]pending.take")))
extern void stile_import_170(uint32_t, uint32_t);
bool stile_tools_pending_take(stile_tools_pending self, stile_string *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  f0 = self.handle;
  struct { bool failed; union { stile_string ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f1 = (uint32_t)(uintptr_t)&result;
  stile_import_170(f0, f1);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/tools@0.1.0"), import_name("get")))
extern void stile_import_171(uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_env_tools(stile_env self, stile_string name, stile_tools_toolbox *out, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)name.data;
  f2 = name.len;
  struct { bool failed; union { stile_tools_toolbox ok; stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f3 = (uint32_t)(uintptr_t)&result;
  stile_import_171(f0, f1, f2, f3);
  if (result.failed && error) *error = result.value.error;
  if (!result.failed) *out = result.value.ok;
  return !result.failed;
}

__attribute__((import_module("stile:capability/tools@0.1.0"), import_name("put")))
extern void stile_import_172(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
bool stile_env_put_tools(stile_env self, stile_string name, stile_tools_toolbox toolbox, stile_error *error) {
  uint32_t f0 = 0;
  uint32_t f1 = 0;
  uint32_t f2 = 0;
  uint32_t f3 = 0;
  uint32_t f4 = 0;
  f0 = self.handle;
  f1 = (uint32_t)(uintptr_t)name.data;
  f2 = name.len;
  f3 = toolbox.handle;
  struct { bool failed; union { stile_error error; } value; } result;
  _Static_assert(sizeof result == 48, "layout");
  f4 = (uint32_t)(uintptr_t)&result;
  stile_import_172(f0, f1, f2, f3, f4);
  if (result.failed && error) *error = result.value.error;
  return !result.failed;
}

_Static_assert(sizeof(stile_tool_annotations) == 4, "layout");
_Static_assert(offsetof(stile_tool_annotations, read_only) == 0, "layout");
_Static_assert(offsetof(stile_tool_annotations, destructive) == 1, "layout");
_Static_assert(offsetof(stile_tool_annotations, idempotent) == 2, "layout");
_Static_assert(offsetof(stile_tool_annotations, open_world) == 3, "layout");
_Static_assert(sizeof(stile_tool_definition) == 40, "layout");
_Static_assert(offsetof(stile_tool_definition, name) == 0, "layout");
_Static_assert(offsetof(stile_tool_definition, description) == 8, "layout");
_Static_assert(offsetof(stile_tool_definition, input_schema) == 16, "layout");
_Static_assert(offsetof(stile_tool_definition, output_schema) == 24, "layout");
_Static_assert(offsetof(stile_tool_definition, annotations) == 36, "layout");
_Static_assert(sizeof(stile_tool_problem) == 16, "layout");
_Static_assert(offsetof(stile_tool_problem, path) == 0, "layout");
_Static_assert(offsetof(stile_tool_problem, message) == 8, "layout");
_Static_assert(sizeof(stile_tool_failure) == 24, "layout");
_Static_assert(offsetof(stile_tool_failure, name) == 0, "layout");
_Static_assert(offsetof(stile_tool_failure, message) == 8, "layout");
_Static_assert(offsetof(stile_tool_failure, stack) == 16, "layout");
_Static_assert(sizeof(stile_list_tool_problem) == 8, "layout");
_Static_assert(offsetof(stile_list_tool_problem, len) == 4, "layout");
_Static_assert(sizeof(stile_tool_problem) == 16, "layout");
_Static_assert(sizeof(stile_tool_error) == 36, "layout");
_Static_assert(offsetof(stile_tool_error, value) == 4, "layout");
#define STILE_TOOLS "stile:extension/tools@0.1.0"
_Static_assert(sizeof(stile_list_tool_definition) == 8, "layout");
_Static_assert(offsetof(stile_list_tool_definition, len) == 4, "layout");
_Static_assert(sizeof(stile_tool_definition) == 40, "layout");
_Static_assert(sizeof(stile_result) == 40, "layout");
_Static_assert(offsetof(stile_result, value) == 4, "layout");
// End of what is generated.

__attribute__((export_name("cabi_realloc"))) void *stile_cabi_realloc(void *old, size_t old_size, size_t align, size_t size) {
  (void)align; // at most 8
  return grow(old, old_size, size);
}

// Errors.

stile_string stile_error_text(stile_error error) {
  stile_buffer number = {0};
  switch (error.tag) {
  case STILE_ERROR_DENIED: return stile_concat(error.value.denied.operation, stile_text(": denied: "), error.value.denied.reason);
  case STILE_ERROR_REVOKED: return stile_concat(stile_text("revoked: "), error.value.revoked);
  case STILE_ERROR_EXPIRED: return stile_text("expired");
  case STILE_ERROR_EXHAUSTED: return stile_concat(stile_text("exhausted: "), error.value.exhausted);
  case STILE_ERROR_TIMED_OUT: return stile_text("timed out");
  case STILE_ERROR_TOO_LARGE:
    stile_add_int(&number, (int64_t)error.value.too_large);
    return stile_concat(stile_text("too large: the limit is "), stile_built(number), stile_text(" bytes"));
  case STILE_ERROR_NOT_FOUND: return stile_concat(stile_text("not found: "), error.value.not_found);
  case STILE_ERROR_ALREADY_EXISTS: return stile_concat(stile_text("already exists: "), error.value.already_exists);
  case STILE_ERROR_CONFLICT: return stile_concat(stile_text("conflict: "), error.value.conflict);
  case STILE_ERROR_INVALID: return stile_concat(stile_text("invalid: "), error.value.invalid);
  case STILE_ERROR_INTERRUPTED: return stile_concat(stile_text("interrupted: "), error.value.interrupted);
  default: return stile_concat(stile_text("unavailable: "), error.value.unavailable);
  }
}

static stile_result failure(const char *name, stile_string message) {
  stile_result r = {.failed = true};
  r.value.error.tag = STILE_TOOL_ERROR_FAILED;
  r.value.error.value.failed = (stile_tool_failure){.name = stile_text(name), .message = message, .stack = stile_text("")};
  return r;
}

stile_result stile_failed(stile_string message) { return failure("error", message); }

stile_result stile_refused(stile_error error) {
  if (error.tag != STILE_ERROR_DENIED) return failure("CapabilityError", stile_error_text(error));
  stile_result r = {.failed = true};
  r.value.error.tag = STILE_TOOL_ERROR_DENIED;
  r.value.error.value.denied = error.value.denied;
  return r;
}

stile_result stile_return(stile_buffer json) {
  if (!json.len) stile_put_null(&json);
  return (stile_result){.value.json = stile_built(json)};
}

// What the host calls.

__attribute__((export_name(STILE_TOOLS "#describe"))) stile_list_tool_definition *stile_describe(void) {
  stile_list_tool_definition *list = STILE_NEW(stile_list_tool_definition, 1);
  while (stile_tools[list->len].name) list->len++;
  list->data = STILE_NEW(stile_tool_definition, list->len);
  for (size_t k = 0; k < list->len; k++) {
    const stile_tool *t = &stile_tools[k];
    stile_tool_definition *d = &list->data[k];
    d->name = stile_text(t->name);
    d->description = stile_text(t->description ? t->description : "");
    d->input_schema = stile_text(t->input ? t->input : STILE_JSON({"type": "object"}));
    if (t->output) d->output_schema.some = true, d->output_schema.value = stile_text(t->output);
    d->annotations = t->annotations;
  }
  return list;
}

__attribute__((export_name(STILE_TOOLS "#call"))) stile_result *stile_call(const char *name, size_t name_len, const char *input, size_t input_len, uint32_t env) {
  stile_result *r = STILE_NEW(stile_result, 1);
  stile_string wanted = {name, name_len};
  stile_json in;
  for (const stile_tool *t = stile_tools; t->name; t++) {
    if (!stile_equal(stile_text(t->name), wanted)) continue;
    if (stile_json_parse((stile_string){input, input_len}, &in)) *r = t->run((stile_env){env}, in);
    else *r = stile_failed(stile_text("the input is nested too deeply"));
    return r;
  }
  r->failed = true;
  r->value.error.tag = STILE_TOOL_ERROR_UNKNOWN_TOOL;
  r->value.error.value.unknown_tool = wanted;
  return r;
}

// Requests.

bool stile_http_send(stile_http_client client, stile_string method, stile_string url, stile_string body, uint16_t *status, stile_string *text, stile_error *error) {
  stile_http_request request = {.method = method, .url = url, .redirect = STILE_HTTP_REDIRECT_FOLLOW};
  if (body.len) request.content = (stile_http_content){.tag = STILE_HTTP_CONTENT_TEXT, .value.text = body};
  stile_http_exchange exchange;
  stile_http_head head;
  if (!stile_http_client_start(client, &request, &exchange, error)) return false;
  stile_pollable ready = stile_http_exchange_subscribe(exchange, &(stile_http_stage){.tag = STILE_HTTP_STAGE_WHOLE});
  stile_pollable_block(ready);
  stile_pollable_drop(ready);
  bool ok = stile_http_exchange_head(exchange, &head, error) && stile_http_exchange_text(exchange, 8 << 20, text, error);
  if (ok) *status = head.status;
  stile_http_exchange_drop(exchange);
  return ok;
}

#endif
