public import Foundation
public import HTTPSession

extension PropertyListDecoder: DataDecoder {
    /// Throws if `PropertyListDecoder` must not read the list: unlike `JSONDecoder`, it recurses without a limit.
    public func check(_ data: Data) throws { try PropertyListBounds.check(data) }
}
