import CYaml

/// The events of a document in YAML 1.1, as libyaml reads them. Yams contains libyaml.
///
/// The nodes of Yams are not used: it computes the hash of each key, also of one that stands for billions of values by its aliases.
struct YAMLEvents: ~Copyable {
    enum Event {
        /// A single value. `isPlain`: it has no quotes and is no block.
        case scalar(String, isPlain: Bool)
        case alias(String)
        case listStart
        case listEnd
        case mapStart
        case mapEnd
        case documentStart
        case documentEnd
        case end
    }

    /// An event, its place counted from 1, and the anchor of the value that it begins.
    struct Element {
        var event: Event
        var line: Int
        var column: Int
        var anchor: String?
    }

    /// The reason why a text is no document.
    struct Invalid: Error {
        var problem: String
        var line: Int
        var column: Int
    }

    /// libyaml keeps the address of its parser and of the text.
    private let parser: UnsafeMutablePointer<yaml_parser_t>
    private let text: UnsafeBufferPointer<UInt8>
    private let isInitialized: Bool

    /// Creates the events of a text, which must exist as long as they do.
    init(_ text: UnsafeBufferPointer<UInt8>) {
        parser = UnsafeMutablePointer<yaml_parser_t>.allocate(capacity: 1)
        parser.initialize(to: yaml_parser_t())
        self.text = text
        isInitialized = yaml_parser_initialize(parser) == 1
        guard isInitialized else { return }
        yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING)
        yaml_parser_set_input_string(parser, text.baseAddress, text.count)
    }

    deinit {
        yaml_parser_delete(parser)
        parser.deinitialize(count: 1)
        parser.deallocate()
    }

    /// Reads the next event. The start of the stream has none.
    mutating func next() throws(Invalid) -> Element {
        guard isInitialized else { throw Invalid(problem: "no memory is left", line: 1, column: 1) }
        while true {
            var event = yaml_event_t()
            guard yaml_parser_parse(parser, &event) == 1 else { throw invalid }
            defer { yaml_event_delete(&event) }
            guard let kind = Self.kind(event) else { continue }
            let mark = event.start_mark
            return Element(event: kind, line: mark.line + 1, column: mark.column + 1, anchor: Self.anchor(event))
        }
    }

    private static func kind(_ event: yaml_event_t) -> Event? {
        switch event.type {
        case YAML_SCALAR_EVENT:
            let scalar = event.data.scalar
            // A value may contain NUL.
            let text = String(decoding: UnsafeBufferPointer(start: scalar.value, count: scalar.length), as: UTF8.self)
            return .scalar(text, isPlain: scalar.style == YAML_PLAIN_SCALAR_STYLE)
        case YAML_ALIAS_EVENT: return .alias(text(event.data.alias.anchor) ?? "")
        case YAML_SEQUENCE_START_EVENT: return .listStart
        case YAML_SEQUENCE_END_EVENT: return .listEnd
        case YAML_MAPPING_START_EVENT: return .mapStart
        case YAML_MAPPING_END_EVENT: return .mapEnd
        case YAML_DOCUMENT_START_EVENT: return .documentStart
        case YAML_DOCUMENT_END_EVENT: return .documentEnd
        case YAML_STREAM_END_EVENT: return .end
        default: return nil
        }
    }

    private static func anchor(_ event: yaml_event_t) -> String? {
        switch event.type {
        case YAML_SCALAR_EVENT: text(event.data.scalar.anchor)
        case YAML_SEQUENCE_START_EVENT: text(event.data.sequence_start.anchor)
        case YAML_MAPPING_START_EVENT: text(event.data.mapping_start.anchor)
        default: nil
        }
    }

    private static func text(_ pointer: UnsafeMutablePointer<yaml_char_t>?) -> String? { pointer.map { String(cString: $0) } }

    /// The error of the parser, which has stopped.
    private var invalid: Invalid {
        let state = parser.pointee
        let problem = state.problem.map { String(cString: $0) } ?? "unknown error"
        if state.error == YAML_READER_ERROR {
            let lines = String(decoding: text.prefix(state.problem_offset), as: UTF8.self)
                .split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
            return Invalid(problem: problem, line: max(1, lines.count), column: 1 + (lines.last?.unicodeScalars.count ?? 0))
        }
        let context = state.context.map { " (\(String(cString: $0)))" } ?? ""
        return Invalid(
            problem: problem + context, line: state.problem_mark.line + 1, column: state.problem_mark.column + 1)
    }
}
