import EventLoop
import Logging

/// Records log lines: their messages, or with the level and the metadata too.
struct LogLines: LogHandler {
    let lines: Locked<[String]>
    var isComplete = false
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let line = isComplete ? "\(event.level) \(event.message) \(event.metadata ?? [:])" : "\(event.message)"
        lines.withLock { $0.append(line) }
    }
}
