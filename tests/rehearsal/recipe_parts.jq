# Jobs, one a line, that show what the parts of mosaic-mild give: the recipe for $E epochs of a ResNet-18 of half width on the data set $D at 32 to 64
# pixels, the recipe without one part at a time, and a plain SGD with cosine of the same arithmetic (48 pixels). doc/accuracy.md has the results.
#   jq -nc --arg D DATA --argjson E 4 -f tests/rehearsal/recipe_parts.jq | while read -r job; do trainctl submit - <<<"$job"; done
def whole: {
  model: {arch: "resnet18", width: 0.5, classes: 1000, bn_decay: 0.9, zero_init_residual: false, bn_init: "uniform", blur_pool: true,
    image_size: [range(0; 9) as $k | [(if $k == 0 then 0 else ($E * (0.4 + 0.4 * ($k - 0.5) / 8) * 1000 | round / 1000) end), 32 + 4 * $k]]},
  data: {train: ($D + "/train"), eval: ($D + "/validation"), preprocess: "torchvision", random_crop: false},
  cluster: {workers_per_node: 1, threads_per_worker: 1},
  batch_per_worker: 128, epochs: $E, loss: "bce",
  lr: {base: 2.048, base_batch: 2048, scaling: "linear", start: 0, warmup_epochs: ($E * 8 / 28.8), decay: "cosine", end: 0},
  optimizer: {name: "sgdw", momentum: 0.875, weight_decay: 5e-4, decay_bn: true, label_smoothing: 0.08},
  ema: {half_life: 100, every: 20, warmup: false},
  eval: {every_epochs: $E, image_size: 64, batch: 100}, checkpoint: {disable: true}};
def plain: whole | .name = "plain" | .model |= (del(.bn_init, .blur_pool, .zero_init_residual) | .image_size = 48) | .eval.image_size = 48 | del(.loss, .ema) | .optimizer = {name: "sgd", momentum: 0.875, weight_decay: 4.9e-4, decay_bn: true};
[ (whole | .name = "whole"), plain,
  (whole | .name = "without blur" | del(.model.blur_pool)),
  (whole | .name = "cross entropy" | del(.loss)),
  (whole | .name = "without ema" | del(.ema)),
  (whole | .name = "sgd" | .optimizer.name = "sgd" | .optimizer.weight_decay = 4.9e-4),
  (whole | .name = "without smoothing" | .optimizer.label_smoothing = 0),
  (whole | .name = "bn_init ones" | del(.model.bn_init)),
  (whole | .name = "flip alternating" | .data.flip = "alternating"),
  (whole | .name = "whole" | .seed = 2), (plain | .seed = 2),
  (whole | .name = "whole" | .seed = 3), (plain | .seed = 3),
  (plain | .name = "plain 64" | .model.image_size = 64 | .eval.image_size = 64)
] | .[] | .seed //= 1 | .tags = ["parts"]
