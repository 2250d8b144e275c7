import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1

/// FILE URL: a download by async-http-client, with six attempts. The library cannot continue a download where it stopped.
@main struct AsyncHTTPClientDownload {
    static func main() async {
        let arguments = CommandLine.arguments
        guard arguments.count == 3 else { exit(64) }
        let partialFile = arguments[1] + ".part"
        for _ in 0..<6 {
            do {
                let response = try await HTTPClient.shared.execute(HTTPClientRequest(url: arguments[2]), timeout: .seconds(30))
                if (200..<300).contains(response.status.code) {
                    _ = FileManager.default.createFile(atPath: partialFile, contents: nil)
                    guard let file = FileHandle(forWritingAtPath: partialFile) else { exit(73) }
                    for try await buffer in response.body { try file.write(contentsOf: Data(buffer.readableBytesView)) }
                    try file.close()
                    try FileManager.default.moveItem(atPath: partialFile, toPath: arguments[1])
                    exit(0)
                }
            } catch {
                FileHandle.standardError.write(Data("\(error)\n".utf8))
            }
            try? await Task.sleep(for: .milliseconds(500))
        }
        exit(1)
    }
}
