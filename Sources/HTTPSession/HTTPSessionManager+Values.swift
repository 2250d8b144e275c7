public import FoundationEssentials

/// Values of one call, as of `URLSession`.
extension HTTPSessionManager {
    /// Sends a request, and returns the body and the response.
    ///
    /// ```swift
    /// let (data, response) = try await session.data(for: TransferRequest(url: url))
    /// ```
    ///
    /// As in URLSession, a response of any status is returned. ``TransferTask/data()`` and ``TransferTask/decode(as:decoder:)`` of
    /// ``dataTask(for:handlers:startsImmediately:)`` validate the status. Canceling the Swift task cancels the transfer.
    ///
    /// - Parameter request: The request.
    /// - Returns: The body, which is also ``TransferResponse/data`` of the response, and the response.
    /// - Throws: The task's error, such as ``HTTPSessionError/Code/cannotConnectToHost``.
    public func data(for request: TransferRequest) async throws(HTTPSessionError) -> (Data, TransferResponse) {
        let response = try await dataTask(for: request).response
        return (response.data, response)
    }
}
