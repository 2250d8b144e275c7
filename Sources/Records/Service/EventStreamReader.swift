/// The events of a stream of Server-Sent Events (WHATWG HTML, "Parsing an event stream"), read as its bytes arrive.
package struct EventStreamReader {
    /// An event of the stream.
    package struct Event: Hashable {
        /// The type; `message` if the stream names none.
        package var type: String
        /// The data, whose lines are joined by newlines.
        package var data: [UInt8]
    }

    /// The maximum size of an event in bytes. A longer one is dropped.
    package static let limit = 16 << 20

    private var line: [UInt8] = []
    private var type = ""
    private var data: [UInt8]?
    /// The identifier of the last event.
    package private(set) var lastID = ""

    package init() {}

    /// Adds bytes. - Returns: the events that are complete now.
    package mutating func append(_ bytes: some Collection<UInt8>) -> [Event] {
        var events: [Event] = []
        for byte in bytes {
            guard byte == 0x0a else {
                if line.count < Self.limit { line.append(byte) }
                continue
            }
            if line.last == 0x0d { line.removeLast() }
            endLine(&events)
            line.removeAll(keepingCapacity: true)
        }
        return events
    }

    private mutating func endLine(_ events: inout [Event]) {
        guard !line.isEmpty else {
            if let data { events.append(Event(type: type.isEmpty ? "message" : type, data: data)) }
            (type, data) = ("", nil)
            return
        }
        // A line that begins with a colon is a comment.
        let name = line.prefix { $0 != UInt8(ascii: ":") }
        var value = line.dropFirst(name.count + 1)
        if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
        switch String(decoding: name, as: UTF8.self) {
        case "event": type = String(decoding: value, as: UTF8.self)
        case "id": lastID = String(decoding: value, as: UTF8.self)
        case "data": data = data.map { $0 + [0x0a] + value } ?? Array(value)
        default: break
        }
    }
}
