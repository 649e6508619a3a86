package convert

// utilization converts the configuration of AUDITOR's utilization plugin to an action that makes
// the same table by its rules.
func (c *conversion) utilization(_ *Input, t tree) error {
	fields, u, mail := t.at("auditor", "component_fields_in_record"), t.at("utilization"), t.at("email")
	b := &c.blocks
	b.open("action", "energy", "auditor")
	b.comment("AUDITOR's table of the last month. `bursar usage -measure energy,co2` and the same action without compat have bursar's own figures: see the block energy.")
	b.text("schedule", "0 7 * * *")
	b.open("config")
	b.text("cores", fields.at("cores").or("Cores"))
	b.text("benchmark", fields.at("benchmark").or("HEPscore23"))
	b.text("file_name", u.at("file_name").or("auditor"))
	directory := u.at("file_path").or("/srv/utilization")
	if directory[0] != '/' {
		b.comment("In AUDITOR: %s, relative to the working directory.", directory)
		directory = "/srv/utilization"
	}
	b.text("directory", directory)
	server, port := mail.at("smtp_server").or("smtp.example.org"), mail.at("smtp_port").or("587")
	if mail.at("enable_email_report").truth() {
		b.comment("AUDITOR reads both addresses and the password from SENDER_EMAIL, RECEIVER_EMAIL and PASSWORD.")
		b.texts("to", []string{"head@example.org"})
		b.open("mail")
		b.text("from", "auditor@example.org")
		b.text("host", server)
		b.attr("port", port)
		b.text("user", "auditor@example.org")
		b.text("password_file", "/etc/bursar/mail.password")
		b.close()
	}
	b.open("compat")
	b.text("grouped_by", u.at("groupedby").or("user_id"))
	b.texts("grouped_list", u.at("grouped_list").texts())
	b.attr("watt_per_core", u.at("watt_per_core").text())
	var sites []entry
	for _, site := range t.at("cluster", "watt_per_core", "site").pairs() {
		sites = append(sites, entry{site.key, quote(site.value.text())})
	}
	if len(sites) > 0 {
		b.attr("watt_per_core_of_site", object(sites))
	}
	b.attr("co2_per_kwh", u.at("co2_per_kwh").text())
	b.text("collector_type", t.at("auditor", "collector_type").text())
	b.text("total_cpu", fields.at("total_cpu").text())
	b.close()
	b.close()
	c.leftOver(b, t, map[string]string{
		"logging": "the journal keeps the log", "auditor": "bursar asks its own cluster", "oneshot": "bursar actions run energy/auditor makes a run now",
		"utilization.interval": "a schedule has calendar times", "email": "no mails are enabled",
	})
	b.close()
	c.changed("utilization.file_name", "FILE_NAME_HOST_MONTH_YEAR.csv, written again each interval", "FILE_NAME_auditor_MONTH_YEAR.csv, written once when the month has ended")
	if len(t.at("auditor", "hosts").texts()) > 1 {
		c.changed("auditor.hosts", "a table for each host", "one table of all records of this cluster")
	}
	return nil
}
