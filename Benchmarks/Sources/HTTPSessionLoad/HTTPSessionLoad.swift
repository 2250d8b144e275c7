import FoundationEssentials
import HTTPSession
import RequestLoad

/// Programs that use HTTPSession while they are measured.
///
/// | arguments | action | output |
/// |---|---|---|
/// | `URL COUNT CONCURRENCY [BESIDE BESIDE-COUNT]` | requests, beside others that do not end | as `Limits/http-multi.c` |
/// | `download URL FILE` | a download task | seconds and the peak of resident KiB |
/// | `queue URL COUNT` | tasks of which all but six wait | ``QueueLoad`` |
/// | `resume URL COUNT FILE` | a download that loses its network COUNT times | ``ConnectivityLoad`` |
/// | `release URL COUNT` | tasks that wait for the network | ``ConnectivityLoad`` |
@main
struct HTTPSessionLoad {
    static let usage = """
        HTTPSessionLoad URL COUNT CONCURRENCY [BESIDE BESIDE-COUNT] | download URL FILE | queue URL COUNT
            | resume URL COUNT FILE | release URL COUNT
        """

    static func main() async {
        let words = Array(CommandLine.arguments.dropFirst())
        await RequestLoad.main {
            switch words.first {
            case "download" where words.count == 3:
                print(try await download(words[1], to: words[2]))
            case "queue" where words.count == 3:
                print(try await QueueLoad(url: words[1], count: words[2]).run())
            case "resume" where words.count == 4:
                try await ConnectivityLoad(url: words[1], count: words[2]).resume(to: words[3])
            case "release" where words.count == 3:
                try await ConnectivityLoad(url: words[1], count: words[2]).release()
            default:
                guard let load = RequestLoad(words), let url = URL(string: load.url) else { RequestLoad.usage(usage) }
                print(try await requests(load, url, beside: words.dropFirst(3)))
            }
        }
    }

    /// The default session, except that it allows plain HTTP and has as many connections as transfers.
    static func configuration(connectionsPerHost: Int = 1000) -> SessionConfiguration {
        var configuration = SessionConfiguration.default
        configuration.insecureHTTP = .allowed
        configuration.maximumConnectionsPerHost = connectionsPerHost
        configuration.maximumConnections = 10_000
        return configuration
    }

    private static func requests(_ load: RequestLoad, _ url: URL, beside words: ArraySlice<String>) async throws -> String {
        let session = try HTTPSessionManager(
            configuration: configuration(connectionsPerHost: words.isEmpty ? load.concurrency : 1000))
        let request = TransferRequest(url: url)
        // The first request loads its libraries and buffers before memory is read.
        _ = try await session.dataTask(for: request).data()
        let before = OwnFigures.residentKibibytes
        if let first = words.first, let beside = URL(string: first), let count = words.last.flatMap({ Int($0) }) {
            let tasks = (0..<count).map { _ in session.dataTask(for: TransferRequest(url: beside)) }
            while !tasks.allSatisfy({ $0.state == .running }) { try await Task.sleep(for: .milliseconds(20)) }
            // Until they are connected, have sent their requests and have received the beginnings of their responses.
            try await Task.sleep(for: .seconds(2))
        }
        let with = OwnFigures.residentKibibytes
        let result = try await load.run { try await session.dataTask(for: request).data().count }
        return "\(result) \(before) \(with)"
    }

    private static func download(_ address: String, to path: String) async throws -> String {
        guard let url = URL(string: address) else { RequestLoad.usage(usage) }
        let session = try HTTPSessionManager(configuration: configuration())
        let start = ContinuousClock.now
        let destination = DownloadDestination(URL(fileURLWithPath: path))
        _ = try await session.downloadTask(for: TransferRequest(url: url), to: destination).file()
        let elapsed = (ContinuousClock.now - start) / .seconds(1)
        return "\(elapsed) \(OwnFigures.peakKibibytes)"
    }
}
