internal import HTTPTypes

/// The request, the response and the trailers of a stored response.
struct MessageHeads: Hashable, Sendable {
  var request: HTTPRequest
  var response: HTTPResponse
  var trailers: HTTPFields?
}

/// Message heads behind a reference, so that changing a time does not copy them.
final class MessageHeadsBox: Sendable {
  let heads: MessageHeads

  init(_ heads: MessageHeads) { self.heads = heads }
}
