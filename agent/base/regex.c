/* RE2 expressions on PCRE2: translated (re2.c), compiled with JIT where there is one, run with
 * limits. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "agent/base/regex.h"

#include <errno.h>
#include <stdatomic.h>

#include <pcre2.h>

#include "agent/base/re2.h"

/* Steps of one search. RE2 needs none: it is linear. 300,000 are a few milliseconds. */
#define MATCH_LIMIT 300000
#define HEAP_LIMIT_KIB 20000

struct regex {
    pcre2_code *code;
    pcre2_match_context *limits;
    struct re2_names names;
};

static atomic_ulong cut_off;

unsigned long regex_cut_off(void)
{
    return atomic_load_explicit(&cut_off, memory_order_relaxed);
}

static int compile(struct regex *re, const struct buf *text, struct err *reterr)
{
    int code;
    PCRE2_SIZE at;
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (!context)
        return -ENOMEM;
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    re->code = pcre2_compile(text->data ? text->data : (PCRE2_SPTR) "", text->len,
                             PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_ALT_CIRCUMFLEX |
                                 PCRE2_NEVER_BACKSLASH_C,
                             &code, &at, context);
    pcre2_compile_context_free(context);
    if (!re->code) {
        PCRE2_UCHAR why[160] = "";
        pcre2_get_error_message(code, why, sizeof(why));
        return err_set(reterr, -EINVAL, "%s", (const char *)why);
    }
    pcre2_jit_compile(re->code, PCRE2_JIT_COMPLETE); /* without JIT it is only slower */
    return 0;
}

int regex_new(struct bytes pattern, struct regex **ret, struct err *reterr)
{
    _cleanup_(regex_freep) struct regex *re = calloc(1, sizeof(*re));
    _cleanup_buf_ struct buf *text = buf_new(0);
    if (!re || !text)
        return err_set(reterr, -ENOMEM, "out of memory");
    int r = re2_translate(pattern, text, &re->names, reterr);
    if (r == 0)
        r = compile(re, text, reterr);
    if (r == 0 && !(re->limits = pcre2_match_context_create(NULL)))
        r = -ENOMEM;
    if (r < 0)
        return r == -ENOMEM ? err_set(reterr, r, "out of memory") : r;
    pcre2_set_match_limit(re->limits, MATCH_LIMIT);
    pcre2_set_heap_limit(re->limits, HEAP_LIMIT_KIB);
    *ret = TAKE_PTR(re);
    return 0;
}

struct regex *regex_free(struct regex *re)
{
    if (!re)
        return NULL;
    pcre2_code_free(re->code);
    pcre2_match_context_free(re->limits);
    re2_names_done(&re->names);
    free(re);
    return NULL;
}

unsigned regex_groups(const struct regex *re)
{
    return re->names.n;
}

const char *regex_group_name(const struct regex *re, unsigned group)
{
    return group >= 1 && group <= re->names.n ? re->names.items[group - 1] : "";
}

static void copy_spans(pcre2_match_data *md, struct regex_span *spans, unsigned n)
{
    const PCRE2_SIZE *v = pcre2_get_ovector_pointer(md);
    unsigned have = pcre2_get_ovector_count(md);
    for (unsigned i = 0; i < n; i++)
        spans[i] = i < have && v[2 * i] != PCRE2_UNSET
                       ? (struct regex_span){v[2 * i], v[2 * i + 1]}
                       : (struct regex_span){REGEX_UNSET, REGEX_UNSET};
}

bool regex_search(const struct regex *re, struct bytes subject, size_t start,
                  struct regex_span *spans, unsigned n)
{
    unsigned pairs = n > re->names.n + 1 ? re->names.n + 1 : n ? n : 1;
    pcre2_match_data *md = pcre2_match_data_create(pairs, NULL);
    if (!md)
        return false;
    PCRE2_SPTR text = subject.data ? subject.data : (PCRE2_SPTR) "";
    int r = pcre2_match(re->code, text, subject.len, start, 0, md, re->limits);
    if (r == PCRE2_ERROR_JIT_STACKLIMIT)
        r = pcre2_match(re->code, text, subject.len, start, PCRE2_NO_JIT, md, re->limits);
    if (r >= 0)
        copy_spans(md, spans, n);
    else if (r != PCRE2_ERROR_NOMATCH)
        atomic_fetch_add_explicit(&cut_off, 1, memory_order_relaxed);
    pcre2_match_data_free(md);
    return r >= 0;
}
