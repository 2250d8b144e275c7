/// The example that `netwatch config init` writes: the usual settings with their defaults, as comments.
enum ConfigurationExample {
    static let text = """
        # The configuration of 'netwatch serve'. 'netwatch config check' checks it, 'netwatch config show' prints all values with their sources.
        # Files in conf.d beside this one are added to it.

        # The servers that are probed: HOST:PORT, tls://HOST[:PORT], http://… or https://…
        targets: []
        #  - 192.0.2.7:22
        #  - id: shop                      # keeps the history if 'target' or 'name' changes
        #    name: Web shop
        #    target: https://shop.example/health
        #    group: web
        #    labels: {team: shop}          # in records and documents
        #    severity: critical            # info, warning or critical
        #    expect:
        #      status: 200-299
        #      body: ok                    # a regular expression (RE2)
        #    thresholds:
        #      rtt: 200ms                  # slower answers make it degraded

        # The groups of the page, in this order.
        #groups:
        #  - name: web
        #    folded: true
        #    severity: warning

        # A URL with a known answer, which finds captive portals. Nothing is requested without it.
        #canary:
        #  url: http://canary.example/generate_204

        #listen: 127.0.0.1:9130
        #allowed_hosts: [netwatch.example] # names by which browsers may open the page, beside localhost
        #socket: /run/netwatch/api.sock    # of the API, for programs of this machine
        #interval: 10s                     # the time between two probes of a target
        #probe_timeout: 3s
        #fail_after: 2                     # failed probes after which a target is down
        #recover_after: 1
        #open_after: 20s                   # the time that a failure lasts before it is an incident
        #close_after: 0s                   # the time within which a further failure continues an incident
        #thresholds:                       # from which a target that answers is degraded
        #  loss: 20%
        #  response: 2s                    # the median time from the connection to the complete answer

        # Settings that several targets share by 'class: slow'. A target may have them too.
        #classes:
        #  slow:
        #    interval: 5m
        #    labels: {line: cellular}
        #    bytes_per_day: 1000000        # over a metered interface

        #maintenance:
        #  - targets: [web]                # ids, names or groups; all targets without it
        #    weekly: sunday 02:00
        #    duration: 2h

        #time_zone: Europe/Berlin
        #retention:
        #  size: 2GiB
        #  samples: 7d
        #  hours: 90d
        #  days: 1825d

        """
}
