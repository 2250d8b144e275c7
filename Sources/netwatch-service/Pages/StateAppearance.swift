import Reachability

/// The appearance of a state: a word, a shape, and a class of the style sheet. A color alone never carries the meaning.
extension RecordedState {
    /// The state as a word for people.
    var word: StaticString {
        switch self {
        case .unknown: "no result"
        case .up: "up"
        case .degraded: "degraded"
        case .down: "down"
        case .unreachable: "unreachable"
        case .maintenance: "maintenance"
        case .notRecorded: "not recorded"
        }
    }

    /// The class of the style sheet, which is the name of the symbol too.
    var style: StaticString {
        switch self {
        case .unknown: "n"
        case .up: "u"
        case .degraded: "g"
        case .down: "d"
        case .unreachable: "r"
        case .maintenance: "m"
        case .notRecorded: "x"
        }
    }

    /// The meaning of the state in one sentence.
    var meaning: StaticString {
        switch self {
        case .unknown: "No probe has decided yet."
        case .up: "The target answers."
        case .degraded: "The target answers, but slower or with more loss than its limits allow."
        case .down: "The target is at fault: the network before it works."
        case .unreachable: "Something before the target fails: this machine, its link, its name server, or a router."
        case .maintenance: "A maintenance window covers this time; it does not count."
        case .notRecorded: "Nothing was recorded: the service was stopped, or the disk was full."
        }
    }
}

/// The symbols of the page. Each is a shape of its own, so that it is clear without color.
enum PageSymbol {
    /// Returns the symbol of a state. Its meaning stands beside it as a word.
    static func state(_ state: RecordedState) -> Markup {
        "<svg class=\"s \(state.style)\" aria-hidden=true><use href=\"#\(state.style)\"/></svg>"
    }

    /// Returns the symbol of a layer's result.
    static func finding(_ finding: ThisComputer.Finding) -> Markup { state(finding.state) }

    /// The definitions of all symbols, once in a page.
    static let definitions: Markup = """
        <svg width=0 height=0 aria-hidden=true class=v>\
        <symbol id=u viewBox="0 0 16 16"><circle cx=8 cy=8 r=7.5 /><path class=k d="M4.5 8.2l2.4 2.5 4.6-5"/></symbol>\
        <symbol id=d viewBox="0 0 16 16"><path d="M1 1h14v14h-14z"/><path class=k d="M5 5l6 6M11 5l-6 6"/></symbol>\
        <symbol id=g viewBox="0 0 16 16"><path d="M8 .6l7.8 14.4h-15.6z"/><path class=k d="M8 5.6v4.6M8 12v1"/></symbol>\
        <symbol id=r viewBox="0 0 16 16"><path d="M8 0l8 8-8 8-8-8z"/><path class=k d="M4.6 8h2M9.4 8h2"/></symbol>\
        <symbol id=n viewBox="0 0 16 16"><circle class=o cx=8 cy=8 r=6.4 /><circle cx=8 cy=8 r=1.6 /></symbol>\
        <symbol id=m viewBox="0 0 16 16"><rect x=.5 y=2.5 width=15 height=11 rx=3 /><path class=k d="M6 5.5v5M10 5.5v5"/></symbol>\
        <symbol id=x viewBox="0 0 16 16"><path class=o d="M2 8h12"/></symbol></svg>
        """
}

extension ThisComputer.Finding {
    /// The state whose symbol and color the result has.
    var state: RecordedState {
        switch self {
        case .works: .up
        case .degraded: .degraded
        case .fails: .down
        case .unproven: .unknown
        case .notReached, .notUsed: .notRecorded
        }
    }

    /// The result as a word for people.
    var word: StaticString {
        switch self {
        case .works: "ok"
        case .degraded: "degraded"
        case .fails: "fails"
        case .unproven: "not checked"
        case .notReached: "not reached"
        case .notUsed: "not used"
        }
    }
}

extension ThisComputer.Layer {
    var title: StaticString {
        switch self {
        case .link: "Link"
        case .address: "Address"
        case .gateway: "Gateway"
        case .resolver: "Resolver"
        case .internet: "Internet"
        }
    }
}

extension Diagnosis.Finding {
    var shown: ThisComputer.Finding {
        switch self {
        case .works: .works
        case .fails: .fails
        case .unproven: .unproven
        case .notUsed: .notUsed
        case .notReached: .notReached
        }
    }
}
