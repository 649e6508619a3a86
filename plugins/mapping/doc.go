// Package mapping turns the jobs that a source plugin sends into records.
//
// A mapping is the body of a record block: HCL expressions over job.*, source.type,
// source.label, source.version, agent.name and agent.version. [Compile] checks them against the attributes that the plugin
// declares. A record block refines the plugin's default mapping: its meta is merged key by
// key and its components by name, its other attributes replace the default's, and defaults =
// false ignores the default mapping. Components are blocks, or components, a list of objects
// as AUDITOR's JSON has it, for sources whose records have any components. A block whose name
// has a star has amounts, a map: each entry above 0 is a component, with its key in the place
// of the star.
//
// Expressions that only name an attribute, that are constant or that join text
// and attributes are evaluated without HCL; the others see only the attributes
// that they name.
package mapping
