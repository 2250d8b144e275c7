import FoundationEssentials
import Glibc
import HTTPSession
import RequestLoad

/// Programs that use HTTPSession while they are measured.
///
/// | arguments | action | output |
/// |---|---|---|
/// | `URL COUNT CONCURRENCY [BESIDE BESIDE-COUNT]` | requests, beside others that do not end | as `Limits/http-multi.c` |
/// | `URL COUNT CONCURRENCY AUTHORITY` | requests to an https server whose certificate is in a file | the same |
/// | `download URL FILE` | a download task | seconds and the peak of resident KiB |
/// | `parallel URL COUNT FOLDER` | COUNT download tasks at a time, to files that have their numbers as names | the same |
/// | `json URL COUNT` | requests one after the other, each of which decodes a list of objects | the peak of resident KiB |
/// | `queue URL COUNT [different]` | tasks of which all but six wait | ``QueueLoad`` |
/// | `resume URL COUNT FILE` | a download that loses its network COUNT times | ``ConnectivityLoad`` |
/// | `release URL COUNT` | tasks that wait for the network | ``ConnectivityLoad`` |
@main
struct HTTPSessionLoad {
    static let usage = """
        HTTPSessionLoad URL COUNT CONCURRENCY [BESIDE BESIDE-COUNT | AUTHORITY] | download URL FILE
            | parallel URL COUNT FOLDER | json URL COUNT | queue URL COUNT [different] | resume URL COUNT FILE | release URL COUNT
        """

    // An asynchronous main function ends the first thread (dispatch_main(3)), and callgrind with it.
    static func main() {
        Task.detached {
            await run(Array(CommandLine.arguments.dropFirst()))
            exit(0)
        }
        while true { pause() }
    }

    private static func run(_ words: [String]) async {
        await RequestLoad.main {
            switch words.first {
            case "download" where words.count == 3:
                print(try await download(words[1], to: [words[2]]))
            case "parallel" where words.count == 4:
                print(try await download(words[1], to: (0..<(Int(words[2]) ?? 1)).map { "\(words[3])/\($0)" }))
            case "json" where words.count == 3:
                print(try await documents(words[1], count: Int(words[2]) ?? 1))
            case "queue" where words.count == 3 || words.dropFirst(3) == ["different"]:
                print(try await QueueLoad(url: words[1], count: words[2], areDifferent: words.count == 4).run())
            case "resume" where words.count == 4:
                try await ConnectivityLoad(url: words[1], count: words[2]).resume(to: words[3])
            case "release" where words.count == 3:
                try await ConnectivityLoad(url: words[1], count: words[2]).release()
            default:
                guard let load = RequestLoad(words), let url = URL(string: load.url) else { RequestLoad.usage(usage) }
                print(try await requests(load, url))
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

    private static func requests(_ load: RequestLoad, _ url: URL) async throws -> String {
        var configuration = configuration(connectionsPerHost: load.further.isEmpty ? load.concurrency : 1000)
        if let authority = load.authority {
            configuration.securityPolicy.roots = .given(Set(try Certificate.all(inFile: authority)))
        }
        let session = try HTTPSessionManager(configuration: configuration)
        // AsyncHTTPClientLoad makes a new request each time too.
        let request = { @Sendable () async throws -> Int in
            try await session.dataTask(for: TransferRequest(url: url)).data().count
        }
        try await load.warmUp(request)
        let before = OwnFigures.residentKibibytes
        if let first = load.further.first, let beside = URL(string: first), let count = load.further.last.flatMap({ Int($0) }) {
            let tasks = (0..<count).map { _ in session.dataTask(for: TransferRequest(url: beside)) }
            while !tasks.allSatisfy({ $0.state == .running }) { try await Task.sleep(for: .milliseconds(20)) }
            // Until they are connected, have sent their requests and have received the beginnings of their responses.
            try await Task.sleep(for: .seconds(2))
        }
        let with = OwnFigures.residentKibibytes
        let result = try await load.run(request)
        return "\(result) \(before) \(with)"
    }

    private static func download(_ address: String, to paths: [String]) async throws -> String {
        guard let url = URL(string: address) else { RequestLoad.usage(usage) }
        let session = try HTTPSessionManager(configuration: configuration())
        let start = ContinuousClock.now
        let tasks = paths.map {
            session.downloadTask(for: TransferRequest(url: url), to: DownloadDestination(URL(fileURLWithPath: $0)))
        }
        for task in tasks { _ = try await task.file() }
        let elapsed = (ContinuousClock.now - start) / .seconds(1)
        return "\(elapsed) \(OwnFigures.peakKibibytes)"
    }

    /// An object of the benchmark's document.
    private struct Device: Decodable {
        let id: Int
        let name: String
        let active: Bool
        let load: Double
    }

    private static func documents(_ url: String, count: Int) async throws -> String {
        let session = try HTTPSessionManager(configuration: configuration())
        for _ in 0..<count {
            guard try await !session.get(url).decode(as: [Device].self).isEmpty else { throw UnexpectedStatus(code: 200) }
        }
        return "\(OwnFigures.peakKibibytes)"
    }
}
