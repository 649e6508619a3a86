package convert

// convertUtilization converts the configuration of AUDITOR's utilization plugin to an action that makes
// the same table by its rules.
func (c *conversion) convertUtilization(_ *Input, t tree) error {
	fields, u, mail := t.subtree("auditor", "component_fields_in_record"), t.subtree("utilization"), t.subtree("email")
	b := &c.blocks
	b.openBlock("action", "energy", "auditor")
	b.writeComment("AUDITOR's table of the last month. `bursar usage -measure energy,co2` and the same action without compat have bursar's own figures: see the block energy.")
	b.writeText("schedule", "0 7 * * *")
	b.openBlock("config")
	b.writeText("cores", fields.subtree("cores").textOr("Cores"))
	b.writeText("benchmark", fields.subtree("benchmark").textOr("HEPscore23"))
	b.writeText("file_name", u.subtree("file_name").textOr("auditor"))
	directory := u.subtree("file_path").textOr("/srv/utilization")
	if directory[0] != '/' {
		b.writeComment("In AUDITOR: %s, relative to the working directory.", directory)
		directory = "/srv/utilization"
	}
	b.writeText("directory", directory)
	server, port := mail.subtree("smtp_server").textOr("smtp.example.org"), mail.subtree("smtp_port").textOr("587")
	if mail.subtree("enable_email_report").truthValue() {
		b.writeComment("AUDITOR reads both addresses and the password from SENDER_EMAIL, RECEIVER_EMAIL and PASSWORD.")
		b.writeTexts("to", []string{"head@example.org"})
		b.openBlock("mail")
		b.writeText("from", "auditor@example.org")
		b.writeText("host", server)
		b.writeAttribute("port", port)
		b.writeText("user", "auditor@example.org")
		b.writeText("password_file", "/etc/bursar/mail.password")
		b.closeBlock()
	}
	b.openBlock("compat")
	b.writeText("grouped_by", u.subtree("groupedby").textOr("user_id"))
	b.writeTexts("grouped_list", u.subtree("grouped_list").listTexts())
	b.writeAttribute("watt_per_core", u.subtree("watt_per_core").plainText())
	var sites []entry
	for _, site := range t.subtree("cluster", "watt_per_core", "site").listPairs() {
		sites = append(sites, entry{site.key, quoteText(site.value.plainText())})
	}
	if len(sites) > 0 {
		b.writeAttribute("watt_per_core_of_site", objectExpression(sites))
	}
	b.writeAttribute("co2_per_kwh", u.subtree("co2_per_kwh").plainText())
	b.writeText("collector_type", t.subtree("auditor", "collector_type").plainText())
	b.writeText("total_cpu", fields.subtree("total_cpu").plainText())
	b.closeBlock()
	b.closeBlock()
	c.leftOver(b, t, map[string]string{
		"logging": "the journal keeps the log", "auditor": "bursar asks its own cluster", "oneshot": "bursar actions run energy/auditor makes a run now",
		"utilization.interval": "a schedule has calendar times", "email": "no mails are enabled",
	})
	b.closeBlock()
	c.noteChanged("utilization.file_name", "FILE_NAME_HOST_MONTH_YEAR.csv, written again each interval", "FILE_NAME_auditor_MONTH_YEAR.csv, written once when the month has ended")
	if len(t.subtree("auditor", "hosts").listTexts()) > 1 {
		c.noteChanged("auditor.hosts", "a table for each host", "one table of all records of this cluster")
	}
	return nil
}
