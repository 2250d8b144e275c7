public import HTTPSession

/// AFNetworking's access to the header fields of a serializer. `HTTPRequestSerializer.headerFields` has the same fields.
extension HTTPRequestSerializer {
    /// Sets a header field of every request; `nil` removes it.
    ///
    /// - Throws: `HTTPSessionError.Code.invalidRequest` for a name or a value that no header field can have.
    public mutating func setValue(_ value: String?, forHTTPHeaderField name: String) throws(HTTPSessionError) {
        try headerFields.set(value, forFieldNamed: name)
    }

    /// Returns the value of the header field of every request; `nil` if there is none.
    public func value(forHTTPHeaderField name: String) -> String? {
        HTTPField.Name(name).flatMap { headerFields[$0] }
    }

    /// Removes the `Authorization` that `setAuthorizationHeaderField(username:password:)` set.
    public mutating func clearAuthorizationHeader() {
        headerFields[.authorization] = nil
    }
}
