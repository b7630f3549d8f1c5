-- name: read
-- The bytes of the database, and those of them that are free for new rows.
SELECT page_count * page_size, freelist_count * page_size
FROM pragma_page_count CROSS JOIN pragma_page_size CROSS JOIN pragma_freelist_count;

-- name: shrink
-- Return up to 128 free pages to the file system: half a megabyte, two milliseconds of the writer's time.
PRAGMA incremental_vacuum(128);
