// Package recordfile writes and reads Parquet files of records: those of bursar's own archives,
// from which a record can be restored exactly, and AUDITOR's. A manifest says what files of
// an archive have.
//
// Both schemas begin with AUDITOR's columns: record_id, meta and components as JSON,
// start_time, stop_time and runtime. AUDITOR's has these alone, with milliseconds. Bursar's
// has microseconds and everything that /v1/records shows.
package recordfile
