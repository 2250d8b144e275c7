import Console
import Foundation

/// A line on standard error about what the program does not do, before transfers begin.
enum Notice {
    static func write(_ text: String) {
        FileHandle.standardError.write(Data((Failure(0, text).line + "\n").utf8))
    }
}
