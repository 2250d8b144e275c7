internal import Expressions

/// What the client of a dialogue says, and what it expects: the steps in their order. Without steps the connection is the whole probe.
///
/// ```swift
/// var settings = ProbeSettings()
/// settings.dialogue.use(.smtp)
/// ```
public struct DialogueSettings: Hashable, Sendable {
    /// The error for a step that is not valid.
    public struct InvalidStep: Error, Hashable, Sendable, CustomStringConvertible {
        /// One line with the reason.
        public let description: String

        init(_ description: String) { self.description = ExternalText.shortened(description) }
    }

    /// The most steps.
    static let stepLimit = 64
    /// The most bytes of a text to send.
    static let textLimit = 4_096

    private(set) var steps: [DialogueStep] = []
    private var isPreset = false

    /// Creates settings without steps.
    public init() {}

    /// Whether there are no steps.
    public var isEmpty: Bool { steps.isEmpty }

    /// Replaces the steps by those of a well-known protocol.
    public mutating func use(_ preset: Preset) { (steps, isPreset) = (preset.steps, true) }

    /// Adds a step that reads lines until one matches an expression ([RE2](https://github.com/google/re2/wiki/Syntax)). A line is at most 8 KiB long,
    /// and has no line end. Named groups, such as `(?P<version>[0-9.]+)`, are evidence, and `${version}` stands for them in later texts.
    ///
    /// - Throws: ``InvalidStep``.
    public mutating func expect(_ expression: String) throws(InvalidStep) {
        do { try add(.expectLine(.init(expression: Expression(capturing: expression)))) } catch let error as InvalidStep {
            throw error
        } catch { throw InvalidStep("\(error)") }
    }

    /// Adds a step that sends a text, with CR and LF behind it unless it ends with LF. `${NAME}` and `${NUMBER}` stand for the groups that the last
    /// expression has captured, `${host}` for the name of the server, and `$$` for `$`.
    ///
    /// - Throws: ``InvalidStep``.
    public mutating func send(_ text: String) throws(InvalidStep) {
        guard text.utf8.count <= Self.textLimit else { throw InvalidStep("a text has more than \(Self.textLimit) bytes") }
        try add(.send(text))
    }

    /// Adds a step that begins TLS, with the trust of ``ProbeSettings/tls``.
    ///
    /// - Throws: ``InvalidStep``, if a step before it has begun TLS.
    public mutating func startTLS() throws(InvalidStep) {
        guard !steps.contains(.startTLS) else { throw InvalidStep("TLS has begun already") }
        try add(.startTLS)
    }

    private mutating func add(_ step: DialogueStep) throws(InvalidStep) {
        guard steps.count < Self.stepLimit else { throw InvalidStep("more than \(Self.stepLimit) steps") }
        steps.append(step)
    }
}

extension DialogueSettings: KindSettings {
    package static let name = "dialogue"
    package static let help = "what is said on the connection, and what the server answers"
    package static let keys: [SettingKey<DialogueSettings>] = [
        SettingKey(
            "preset",
            .text(limit: 32) { settings, text in
                guard settings.isEmpty else { throw InvalidStep("a dialogue has a preset or steps, and not both") }
                settings.use(try preset(text))
            },
            "the protocol of a well-known server: \(Preset.allCases.map { "`\($0.rawValue)`" }.joined(separator: ", "))"),
        SettingKey(
            "steps", .maps(["expect", "send", "starttls"]) { settings, map in try settings.add(map) },
            "a list of maps with `expect`, an EXPRESSION for a line; `send`, a text; or `starttls: true`"),
    ]
    /// A list stands for the steps, and a text for the preset.
    package static let shortForms: (text: String, list: String)? = ("preset", "steps")

    package var lack: String? { isEmpty ? "needs a dialogue: dialogue.preset or dialogue.steps" : nil }

    private static func preset(_ text: String) throws(InvalidStep) -> Preset {
        guard let preset = Preset(rawValue: text) else {
            throw InvalidStep(
                "'\(text)' is not known; write \(Preset.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        return preset
    }

    /// Adds the steps of a map in the order expect, send, starttls.
    private mutating func add(_ map: [String: String]) throws(InvalidStep) {
        guard !isPreset else { throw InvalidStep("a dialogue has a preset or steps, and not both") }
        guard !map.isEmpty else { throw InvalidStep("a step is empty; write expect, send or starttls") }
        if let expression = map["expect"] { try expect(expression) }
        if let text = map["send"] { try send(text) }
        switch map["starttls"] {
        case nil: break
        case "false": if map.count == 1 { throw InvalidStep("a step is empty; write expect, send or starttls") }
        case "true": try startTLS()
        case .some(let text): throw InvalidStep("starttls '\(text)': write true or false")
        }
    }

    /// Recordings have neither the texts, which may be secrets, nor the expressions: they have whether the answers met them.
    package struct Recorded: Codable { var count: Int }

    package var recorded: Recorded { Recorded(count: steps.count) }

    package init(_ recorded: Recorded) { self.init() }
}
