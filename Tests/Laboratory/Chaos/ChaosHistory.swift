/// The history of each transfer, read from the log of all lives of the client.
struct ChaosHistory {
    /// The bytes of a response that may not be in the file yet when the client is killed. They are read twice.
    static let unwritten: Int64 = 128 << 10

    /// The completions that the session without a journal has reported.
    private(set) var done: [String: Int] = [:]
    /// The identifiers of a durable task.
    private(set) var identifiers: [String: Set<String>] = [:]
    /// The identifiers of a durable task's delivered events.
    private(set) var events: [String: [String]] = [:]
    /// The durable tasks whose events did not report success, or were delivered again after their acknowledgement.
    private(set) var wrong: Set<String> = []
    /// The bytes read of response bodies.
    private(set) var bytes: [String: Int64] = [:]
    private(set) var lives = 0
    private(set) var failures: [String] = []
    private var acknowledged: Set<String> = []
    private let sizes: [String: Int64]
    // The offsets of the bodies that are being read, and of those that were being read when the client was killed.
    private var open: [String: Int64] = [:]
    private var interrupted: [String: Int64] = [:]

    /// Reads the log. `sizes`: the sizes of the files' last versions.
    init(_ lines: [[String]], sizes: [String: Int64]) {
        self.sizes = sizes
        for words in lines { read(words) }
    }

    private mutating func read(_ words: [String]) {
        guard words.count >= 2 else {
            lives += 1
            interrupted.merge(open) { $1 }
            open = [:]
            return
        }
        let (name, number) = (words[1], words.count > 2 ? Int64(words[2]) : nil)
        switch words[0] {
        case "done":
            done[name, default: 0] += 1
            hasEnded(name)
        case "open":
            if let before = interrupted.removeValue(forKey: name) {
                bytes[name, default: 0] += max(0, (number ?? 0) - before) + ChaosHistory.unwritten
            }
            open[name] = number
        case "read":
            bytes[name, default: 0] += number ?? 0
            open[name] = nil
        case "made", "known": identifiers[name, default: []].insert(words[2])
        case "event":
            let id = words[2]
            if !(events[name] ?? []).contains(id) { hasEnded(name) }
            events[name, default: []].append(id)
            identifiers[name, default: []].insert(id)
            if words.dropFirst(3) != ["finished"] || acknowledged.contains(id) {
                wrong.insert(name)
                failures.append(words.joined(separator: " "))
            }
        case "acknowledged": acknowledged.insert(words[2])
        default: failures.append(words.joined(separator: " "))
        }
    }

    /// Counts the bytes of an interrupted body that was complete: nothing had to be read again.
    private mutating func hasEnded(_ name: String) {
        guard let before = interrupted.removeValue(forKey: name) else { return }
        bytes[name, default: 0] += max(0, (sizes[name] ?? 0) - before) + ChaosHistory.unwritten
    }
}
