import Reachability

extension ProbeSettings {
    private typealias Key = ConfigurationKey<ProbeSettings>

    /// When a target is probed, how many results change its status, when its failures are incidents, where its packets come from, and who
    /// resolves its name: for all targets, for a class, and for a target. The more special place replaces the more general one.
    static let pacingKeys: [ConfigurationKey<ProbeSettings>] = [
        Key(
            "interval", \.interval, .duration(minimum: .milliseconds(10)), "the time between two probes of a target"
        ).option("duration"),
        Key("probe_timeout", \.timeout, .duration(), "the deadline of one probe").option("duration"),
        Key(
            "fail_after", \.failAfter, .number(in: ProbeSettings.resultCounts),
            "the failed probes in a row after which a target is down"
        ).documented(". They are at least `interval` apart").option("n"),
        Key(
            "recover_after", \.recoverAfter, .number(in: ProbeSettings.resultCounts),
            "the successful probes in a row after which a target is up"
        ).option("n"),
        Key(
            "open_after", \.openAfter, .duration(minimum: .zero), "the time that a failure lasts before an incident opens"
        ).documented(
            " ([incidents.md](incidents.md)); `0s` for at once. Failures that this machine alone determines always open one at once"
        ).option("duration"),
        Key(
            "close_after", \.closeAfter, .duration(minimum: .zero),
            "the time after an incident within which a further failure continues it"
        ).option("duration"),
        Key("addresses", \.addresses, .probedAddresses, "which addresses of a name are probed").documented(
            ": `any`, until one answers, or `each`, with a row for each below the target; [verdicts.md](verdicts.md#addresses)"),
        Key("source_address", \.sourceAddress, .orNone(.sourceAddress), "the address of this machine from which probes are sent")
            .documented(
                ", without a zone, `none` for the kernel's choice. Only addresses of the same family are probed; names are resolved without it"
            ),
        Key("mark", \.mark, .mark, "the mark of the packets of probes (`SO_MARK`)").documented(
            ", as in `7` or `0x7`, `0` for none. It needs a [permission](#packets)"),
        Key("resolver", \.resolver, .orNone(.nameServer), "the name server that alone resolves the names of targets").documented(
            ", `ADDRESS` or `ADDRESS:PORT`, `none` for those of the machine. Neither `/etc/hosts` nor the search list has a part in it"
        ),
    ]

    /// The limits from which a target that answers is degraded.
    static let thresholdsKey = ConfigurationKey<ProbeSettings>(
        "thresholds", \.quality, keys: QualityLimits.keys, "the limits from which a target that answers is degraded"
    ).documented(", each `none` for no limit")
}

extension QualityLimits {
    private typealias Key = ConfigurationKey<QualityLimits>

    fileprivate static let keys = ConfigurationKeys<QualityLimits>([
        Key("loss", \.loss, .orNone(.part), "the part of the results that fail"),
        Key("rtt", \.roundTrip, .orNone(.duration()), "the median round trip").documented(", DURATION"),
        Key("response", \.responseTime, .orNone(.duration()), "the median time from the connection to the complete answer")
            .documented(", DURATION, see [response times](command-line.md#response-times)").example("2s"),
        Key("jitter", \.jitter, .orNone(.duration()), "the jitter of the round trips").documented(", DURATION"),
        Key("window", \.window, .number(in: 5...20), "the results that are compared"),
    ])
}

extension ConfigurationForm<ProbedAddresses> {
    fileprivate static var probedAddresses: Self {
        .parsed(text: { $0.rawValue }) { text throws(ConfigurationReader.Invalid) in
            guard let addresses = ProbedAddresses(rawValue: text) else {
                throw ConfigurationReader.Invalid("write any or each")
            }
            return addresses
        }
    }
}

extension ConfigurationForm<IPAddress> {
    fileprivate static var sourceAddress: Self {
        .parsed(text: { "\($0)" }) { text throws(ConfigurationReader.Invalid) in
            guard let address = RouteSelector.source(parsing: text) else {
                throw ConfigurationReader.Invalid("not the address of a host; write one such as 192.0.2.2, or none")
            }
            return address
        }
    }
}

extension ConfigurationForm<NameServerAddress> {
    fileprivate static var nameServer: Self {
        .parsed(text: { "\($0)" }) { text throws(ConfigurationReader.Invalid) in
            guard let server = NameServerAddress(text) else {
                throw ConfigurationReader.Invalid(
                    "not the address of a name server; write one such as 192.0.2.53 or 192.0.2.53:5353, or none")
            }
            return server
        }
    }
}

extension ConfigurationForm<UInt32> {
    fileprivate static var mark: Self {
        .parsed(limits: "0 to 0xffffffff", text: { $0 == 0 ? "0" : RouteSelector.text(ofMark: $0) }) {
            text throws(ConfigurationReader.Invalid) in
            guard let mark = RouteSelector.mark(parsing: text) else {
                throw ConfigurationReader.Invalid("write a number from 0 to 0xffffffff")
            }
            return mark
        }
    }
}

extension ConfigurationForm<Double> {
    /// A part from 0 to 1, as a number or in percent.
    fileprivate static var part: Self {
        .parsed(text: { "\(Int(($0 * 100).rounded()))%" }) { text throws(ConfigurationReader.Invalid) in
            let isPercent = text.hasSuffix("%")
            guard let number = Double(isPercent ? text.dropLast() : text[...]), number.isFinite,
                case let part = isPercent ? number / 100 : number, 0...1 ~= part
            else { throw ConfigurationReader.Invalid("write a part from 0% to 100%, as in 20%, or none") }
            return part
        }
    }
}
