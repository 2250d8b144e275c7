public import Foundation
public import HTTPSession

extension PropertyListDecoder: DataDecoder {
    /// Throws for a list that `PropertyListDecoder` is not to read: unlike `JSONDecoder`, it recurses as deep as the list is.
    public func check(_ data: Data) throws { try PropertyListBounds.check(data) }
}
