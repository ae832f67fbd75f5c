#include "proto/schema.h"

#include "proto/schema_tables.h"

const struct schema_message *schema_request(enum signal s)
{
    return schema_requests[s];
}

const struct schema_message *schema_response(enum signal s)
{
    return schema_responses[s];
}

const struct schema_message *schema_find(const char *name)
{
    for (size_t i = 0; i < schema_nmessages; i++)
        if (strcmp(schema_messages[i].name, name) == 0)
            return &schema_messages[i];
    return NULL;
}
