/*
 * Edits of the attributes of resources, for processors. Spans, points and records below are copied as bytes, and so are the
 * other fields of the resource. A client sends the same resource again and again, so the last few results are kept and given
 * out without an edit.
 */
#ifndef MOTEL_PIPELINE_RESOURCE_EDITOR_H
#define MOTEL_PIPELINE_RESOURCE_EDITOR_H

#include "proto/attr_list.h"
#include "proto/batch.h"

struct resource_editor;

/* `edit` changes the attributes of one resource: called from any thread; it must make the same of the same attributes every
 * time, since results are remembered; 0 or -ENOMEM. NULL when out of memory. */
struct resource_editor *resource_editor_new(int (*edit)(void *ctx, struct attr_list *l), void *ctx);
struct resource_editor *resource_editor_free(struct resource_editor *e); /* NULL ok; returns NULL */

/* Edits every resource of `in`. Nothing changed: *ret is a reference of `in`. Thread safe. 0 or -ENOMEM. */
int resource_editor_run(struct resource_editor *e, struct batch *in, struct batch **ret);

#endif
