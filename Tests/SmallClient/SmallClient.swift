internal import FoundationEssentials
internal import Glibc
internal import HTTPSession

/// A program that uses a session and nothing else, to measure the session's cost. `small-client URL` makes one request and
/// prints the request's URL, the body's text and the sizes of its memory (proc_pid_smaps_rollup in proc(5), in KiB).
/// `small-client URL COUNT` makes COUNT requests, one after the other, before.
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

    private static func run() async throws {
        var configuration = SessionConfiguration()
        configuration.insecureHTTP = .allowed
        configuration.proxy = .none
        let session = try HTTPSessionManager(configuration: configuration)
        for _ in 0..<(CommandLine.arguments.dropFirst(2).first.flatMap { Int($0) } ?? 0) {
            _ = try await session.get(CommandLine.arguments[1]).string()
        }
        let task = session.get(CommandLine.arguments[1])
        print(task.request.url.absoluteString)
        print(try await task.string())
        let rollup = try String(contentsOfFile: "/proc/self/smaps_rollup", encoding: .utf8)
        for line in rollup.split(separator: "\n")
        where ["Rss", "Pss", "Pss_Anon", "Private_Dirty"].contains(line.prefix { $0 != ":" }) {
            print(line)
        }
        withExtendedLifetime(session) {}
    }
}
