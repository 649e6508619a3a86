// Package mapping turns the jobs that a source plugin sends into records.
//
// A mapping is the body of a record block: HCL expressions over job.*, source.*
// and agent.*. [Compile] checks them against the attributes that the plugin
// declares; what a configuration does not say comes from the plugin's default
// mapping, attribute by attribute, but for the components, which are taken from
// one of the two as a whole. They are blocks, one for each, or components, a list of
// objects as AUDITOR's JSON has it, for sources whose records have any components.
//
// Expressions that only name an attribute, that are constant or that join text
// and attributes are evaluated without HCL; the others see only the attributes
// that they name.
package mapping
