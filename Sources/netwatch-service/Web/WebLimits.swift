import EventLoop
import Pacing
import Reachability

/// The limits of connections and requests. Times are in nanoseconds.
struct WebLimits: Hashable, Sendable {
    /// The maximum number of connections without a complete request. The oldest is closed for another.
    var waiting = 4_096
    /// The maximum number of connections for pages and documents.
    var connections = 512
    /// The maximum number of streams of events.
    var streams = 512
    /// The connections beyond ``connections`` that only answer `/-/healthy` and `/-/ready`.
    var reserve = 16
    /// The maximum number of connections of an address. All local programs share their address, so it holds for other addresses.
    var connectionsOfAddress = 128

    /// The maximum number of requests of a connection in a second, and of those that are answered without a pause. Further ones are read later.
    var requestRate: Int64 = 50
    var requestBurst: Int64 = 10
    /// The maximum number of requests in a second of all connections that send them faster than they may.
    var delayedRate: Int64 = 500
    /// The number of bytes that are read from a connection at once.
    var readBytes = 16 << 10

    /// The time within which the first request must be complete.
    var headTime = 10 * second
    /// The time for which a connection may stay open without a request.
    var idleTime = 60 * second
    /// The time within which the content of a request must arrive.
    var contentTime = 10 * second
    /// The time for which a client may read nothing of a response.
    var stallTime = 30 * second
    /// The time in which a client may read the last response before its connection is closed.
    var lingerTime = second
    /// The time that the requests which are being answered have when the server stops.
    var drainTime = second / 2
    /// The time that the tasks of connections have to end after that. One that does not is never resumed, and keeps its memory.
    var taskTime = second / 2
    /// The time between two comments of a silent stream.
    var keepAliveTime = 15 * second
    /// The time between two checks of the times above, and of the memory of connections that have ended.
    var checkTime = second

    /// The maximum number of bytes of a request's content that no resource reads.
    var contentBytes = 64 << 10
    /// The maximum number of bytes of a content of which a resource reads the end: a job may send all that it has written.
    var readContentBytes = 1 << 30
    /// The number of bytes of it that are kept.
    var keptContentBytes = HeartbeatReport.textLimit
    /// The maximum number of bytes of a field, or of the request's target.
    var fieldBytes = 16 << 10
    /// The maximum number of bytes of all fields.
    var fieldsBytes = 32 << 10
    /// The maximum number of fields.
    var fields = 100

    static let second: Int64 = 1_000_000_000
    /// The limit of open files (getrlimit(2), `RLIMIT_NOFILE`) below which the service does not start. It has about 50 open without a client.
    static let leastOpenFiles = 128

    init() {}

    /// Returns the time between two requests of a connection after its burst. - Parameter delayed: the number of connections that wait for it.
    func requestInterval(delayed: Int) -> Int64 {
        max(Self.second / max(1, requestRate), Int64(delayed).multipliedSaturated(by: Self.second / max(1, delayedRate)))
    }

    /// The limits for the open files of this process.
    static var ofProcess: WebLimits { WebLimits(openFiles: DescriptorUse.currentLimit) }

    /// Creates limits that leave half of the open files or more to probes and to the history.
    ///
    /// - Parameter openFiles: the maximum number of open files of the process, at least ``leastOpenFiles``.
    init(openFiles: Int) {
        let share = max(openFiles, Self.leastOpenFiles) / 8
        (waiting, connections, streams) = (min(waiting, share), min(connections, share), min(streams, share))
    }
}
