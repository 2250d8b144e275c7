internal import FoundationEssentials
internal import Glibc
internal import HTTPSession

/// A program that uses a session and nothing else, to measure the session's cost. `small-client URL` makes one request and
/// prints the request's URL, the body's text and the sizes of its memory (proc_pid_smaps_rollup in proc(5), in KiB).
/// `small-client URL COUNT` makes COUNT requests, one after the other, before. `small-client json URL COUNT` makes COUNT requests,
/// each of which decodes a list of objects, and prints the peak of its memory in KiB.
@main
enum SmallClient {
    // An asynchronous main function ends the first thread (dispatch_main(3)), and callgrind with it.
    static func main() {
        Task.detached {
            do { try await run() } catch {
                print(error)
                exit(1)
            }
            exit(0)
        }
        while true { pause() }
    }

    /// An object of the document of `json`.
    private struct Device: Decodable {
        let id: Int
        let name: String
        let active: Bool
        let load: Double
    }

    private static func run() async throws {
        let words = CommandLine.arguments
        var configuration = SessionConfiguration()
        configuration.insecureHTTP = .allowed
        configuration.proxy = .none
        let session = try HTTPSessionManager(configuration: configuration)
        if words.count == 4, words[1] == "json" {
            guard let count = Int(words[3]), count > 0 else { throw MissingValue(name: "COUNT") }
            for _ in 0..<count {
                let devices = try await session.get(words[2]).decode(as: [Device].self)
                guard !devices.isEmpty else { throw MissingValue(name: "objects") }
            }
            return print(try peakKibibytes())
        }
        for _ in 0..<(words.dropFirst(2).first.flatMap { Int($0) } ?? 0) { _ = try await session.get(words[1]).string() }
        let task = session.get(words[1])
        print(task.request.url.absoluteString)
        print(try await task.string())
        let rollup = try String(contentsOfFile: "/proc/self/smaps_rollup", encoding: .utf8)
        for line in rollup.split(separator: "\n")
        where ["Rss", "Pss", "Pss_Anon", "Private_Dirty"].contains(line.prefix { $0 != ":" }) {
            print(line)
        }
        withExtendedLifetime(session) {}
    }

    /// The peak of the resident memory (VmHWM in proc(5)).
    private static func peakKibibytes() throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        guard let line, let peak = Int(line.filter(\.isNumber)) else { throw MissingValue(name: "VmHWM") }
        return peak
    }

    private struct MissingValue: Error {
        let name: String
    }
}
