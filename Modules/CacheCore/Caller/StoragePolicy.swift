/// A policy that decides what the durable store receives: the original bytes, the encoded value of a ``ResourceTransform``, or
/// both.
///
/// Loads use any matching entry of the store under every policy. If a transform has no encoder, its original is stored whatever
/// the policy says. The same is true for loads of plain bytes and for loads into files.
///
/// The bytes of a `file:` URL are never copied into a durable store. Values made of them are stored under every policy other than
/// ``originals``.
public enum StoragePolicy: String, Hashable, Sendable, CaseIterable {
  /// Stores only the originals. Every transform can be applied to them again without the network.
  case originals
  /// Stores only the encoded values, which use the least space. Another transform of the same resource is loaded again. The
  /// originals do not enter the memory store either, if there is a durable store for the values.
  case variants
  /// Stores both.
  case all
  /// Stores the original, and also the encoded value if it is smaller.
  ///
  /// A full store evicts the least used entries. If the same transformed value is shown repeatedly, its original is evicted
  /// first.
  case automatic
}
