import Foundation
import FoundationNetworking

/// FILE URL: a download by FoundationNetworking's URLSession, with six attempts. On Linux it gives no resume data.
@main struct URLSessionDownload {
    static func main() {
        let arguments = CommandLine.arguments
        guard arguments.count == 3, let url = URL(string: arguments[2]) else { exit(64) }
        let file = URL(fileURLWithPath: arguments[1])
        for _ in 0..<6 {
            let end = DispatchSemaphore(value: 0)
            // The value is read after the semaphore's signal, which follows the only write.
            nonisolated(unsafe) var isDone = false
            let task = URLSession.shared.downloadTask(with: url) { place, response, _ in
                if let place, (response as? HTTPURLResponse).map({ (200..<300).contains($0.statusCode) }) == true {
                    try? FileManager.default.removeItem(at: file)
                    isDone = (try? FileManager.default.moveItem(at: place, to: file)) != nil
                }
                end.signal()
            }
            task.resume()
            end.wait()
            if isDone { exit(0) }
            usleep(500_000)
        }
        exit(1)
    }
}
