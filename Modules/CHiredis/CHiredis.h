// hiredis, the system's client library for Redis, for the trait Redis. RedisStore uses its reader of replies.
#include <hiredis/hiredis.h>
