/// What a client's log says of each transfer, over all of its lives.
struct ChaosHistory {
    /// How much of a response may not be in the file yet when the client is killed: what counts as read again.
    static let unwritten: Int64 = 128 << 10

    /// Ends that the session which ends with its process has told.
    private(set) var done: [String: Int] = [:]
    /// The identifiers that a durable task has been seen under.
    private(set) var identifiers: [String: Set<String>] = [:]
    /// Deliveries of a durable task's event; the identifier of each.
    private(set) var events: [String: [String]] = [:]
    /// Durable tasks whose events said something else than success, or that came again behind their acknowledgement.
    private(set) var wrong: Set<String> = []
    /// Of responses' bodies.
    private(set) var bytes: [String: Int64] = [:]
    private(set) var lives = 0
    private(set) var failures: [String] = []
    private var acknowledged: Set<String> = []
    private let sizes: [String: Int64]
    // Where the body began that is under way; and those that were when the client was killed.
    private var open: [String: Int64] = [:]
    private var left: [String: Int64] = [:]

    /// `sizes`: of the files' last versions.
    init(_ lines: [[String]], sizes: [String: Int64]) {
        self.sizes = sizes
        for words in lines { read(words) }
    }

    private mutating func read(_ words: [String]) {
        guard words.count >= 2 else {
            lives += 1
            left.merge(open) { $1 }
            open = [:]
            return
        }
        let (name, number) = (words[1], words.count > 2 ? Int64(words[2]) : nil)
        switch words[0] {
        case "done":
            done[name, default: 0] += 1
            hasEnded(name)
        case "open":
            if let before = left.removeValue(forKey: name) {
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

    /// Of what a killed client had under way, nothing had to be read any more.
    private mutating func hasEnded(_ name: String) {
        guard let before = left.removeValue(forKey: name) else { return }
        bytes[name, default: 0] += max(0, (sizes[name] ?? 0) - before) + ChaosHistory.unwritten
    }
}
