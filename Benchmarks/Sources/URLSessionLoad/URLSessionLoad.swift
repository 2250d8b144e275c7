import Foundation
import FoundationNetworking
import RequestLoad

/// `URLSessionLoad URL COUNT CONCURRENCY`: the toolchain's URLSession, with as many connections as requests at a time.
@main
struct URLSessionLoad {
    static func main() async {
        guard let load = RequestLoad(CommandLine.arguments.dropFirst()), let url = URL(string: load.url) else {
            RequestLoad.usage("URLSessionLoad URL COUNT CONCURRENCY")
        }
        await RequestLoad.main {
            let configuration = URLSessionConfiguration.ephemeral
            configuration.httpMaximumConnectionsPerHost = load.concurrency
            let session = URLSession(configuration: configuration)
            let result = try await load.run {
                let (data, response) = try await session.data(from: url)
                let code = (response as? HTTPURLResponse)?.statusCode ?? 0
                guard code == 200 else { throw UnexpectedStatus(code: code) }
                return data.count
            }
            print(result)
        }
    }
}
