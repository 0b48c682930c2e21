#include "common/job/job_options.h"

#include <stdio.h>
#include <string.h>

#include "common/net/arch.h"
#include "common/suggest.h"

/* Enums are stored through an int, as gcc and clang lay them out. */
_Static_assert(sizeof(enum job_mode) == sizeof(int), "enums are ints");

#define LIST(...)                                                                                  \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }
#define AT(field)           .offset = offsetof(struct job_spec, field)
#define FLAG(field)         .flag = offsetof(struct job_spec, field)
#define OR_NULL             .nullable = true
#define DEFAULT(json)       .fallback = json
#define RANGE(low, high)    .min = low, .max = high
#define ABOVE               .above_min = true
#define BELOW               .below_max = true
#define LENGTH(high)        .min = 1, .max = high
#define TEXT(kind)          .text = JOB_TEXT_##kind
#define NAMES(kind, length) .names = JOB_TEXT_##kind, .name_max = length
#define BUILT(json)         .built = json
#define WORD(text)          .word = text
#define UNIT(name)          .unit = name
#define HELP(words)         .help = words
#define CHOICE(...)         JOB_OPTION_CHOICE, .choices = LIST(__VA_ARGS__)

/* clang-format off */
static const struct job_option options[] = {
    {"/name", JOB_OPTION_STRING, OR_NULL, AT(name), DEFAULT("null"), TEXT(TITLE), LENGTH(200),
     HELP("What lists and charts call the job.")},
    {"/preset", JOB_OPTION_STRING, OR_NULL, AT(preset), DEFAULT("null"), TEXT(FILE), LENGTH(200),
     HELP("A published recipe that supplies the values the document does not state.")},
    {"/mode", CHOICE("train", "eval"), AT(mode), DEFAULT("\"train\""),
     HELP("eval evaluates the weights of model.init on data.eval without training.")},

    {"/model/arch", JOB_OPTION_ARCH, AT(model.arch), DEFAULT("\"resnet50\""),
     HELP("The network, by torchvision's name. resnet50 is v1.5 (the stride is in the 3x3); resnet50v1 is the paper's. cnn is the small network "
          "of TensorFlow's MNIST example: two 5x5 convolutions of 32 and 64 filters, each with a 2x2 max-pooling, 1024 hidden units and dropout, on "
          "grey images; its defaults are model.classes 10, model.image_size 28, model.dropout 0.4, data.preprocess whole and data.augment false.")},
    {"/model/classes", JOB_OPTION_INTEGER, AT(model.classes), DEFAULT("1000"), RANGE(2, 100000), UNIT("classes"),
     HELP("Labels go from 0 to classes - 1.")},
    {"/model/image_size", JOB_OPTION_SIZES, AT(model.image_size), FLAG(model.sizes), DEFAULT("224"), RANGE(28, 1024), UNIT("pixels"),
     HELP("Width and height of the images the network sees. All but cnn need at least 32. Sizes by epoch save computation, which grows with the "
          "pixels: [[0, 160], [16, 192]] trains at 160 and from epoch 16 on at 192; {\"from\": 160, \"to\": 192, \"ramp\": [6, 17], \"multiple\": 32} "
          "rises in a straight line between two epochs, rounded to multiples. Evaluation is at the last size. Not for arch \"cnn\".")},
    {"/model/width", JOB_OPTION_NUMBER, AT(model.width), DEFAULT("1"), RANGE(0.25, 8),
     HELP("Multiplies channels: the inner ones of each residual block, as torchvision's width_per_group (resnet50 of width 2 is wide_resnet50_2), "
          "or the filters and hidden units of cnn. They are rounded to multiples of 8; a ResNeXt's groups must have 4, 8, 16, ... channels.")},
    {"/model/dropout", JOB_OPTION_NUMBER, AT(model.dropout), DEFAULT("0"), RANGE(0, 1), BELOW,
     HELP("The part of the classifier's inputs that training sets to 0, drawn anew for each image (the others are divided by 1 minus it); "
          "0: none. Evaluation drops nothing.")},
    {"/model/stem", CHOICE("imagenet", "small"), AT(model.stem), DEFAULT("\"imagenet\""),
     HELP("The first layers: imagenet is a 7x7 of stride 2 and a pooling; small is a 3x3 and no pooling.")},
    {"/model/init", JOB_OPTION_STRING, OR_NULL, AT(model.init), DEFAULT("null"), TEXT(PATH), LENGTH(4095),
     HELP("Weights to start from: a safetensors file (F32, F16 or BF16) with torchvision's names, the folder of a checkpoint, or a run "
          "directory (its newest whole checkpoint); null starts from random weights.")},
    {"/model/bn_decay", JOB_OPTION_NUMBER, AT(model.bn_decay), DEFAULT("0.95"), RANGE(0, 1), BELOW,
     HELP("How much of batch norm's running statistics a step keeps (torch's momentum is 1 minus it).")},
    {"/model/zero_init_residual", JOB_OPTION_BOOLEAN, AT(model.zero_init_residual), DEFAULT("true"),
     HELP("Start the last batch norm of each block at 0, so that each block starts as the identity.")},
    {"/model/winograd", JOB_OPTION_BOOLEAN, AT(model.winograd), DEFAULT("true"),
     HELP("Compute 3x3 convolutions of stride 1 by Winograd's minimal filtering where a short measurement shows it to be "
          "faster. Rounding errors grow, to about 4e-7 (root mean square) and 3e-6 (at most) of the largest output; false keeps "
          "them at a third of that.")},

    {"/model/gemm", CHOICE("auto", "openblas", "own"), AT(model.gemm), DEFAULT("\"auto\""),
     HELP("What multiplies the matrices of convolutions. openblas: each convolution of one group is im2col and cblas_sgemm, without Winograd. "
          "own: the engine's kernels. auto: what was measured to be faster on this kind of processor: own with AVX2 and AVX-512, else openblas. "
          "The classifier is multiplied by OpenBLAS, convolutions of several groups by the engine.")},

    {"/data/train", JOB_OPTION_STRING, OR_NULL, AT(data.train), DEFAULT("null"), TEXT(PATH), LENGTH(4095),
     HELP("The training images: a folder of TFRecord shards, a folder of class folders of JPEGs, or \"synthetic\" "
          "(random images). Required unless mode is eval.")},
    {"/data/eval", JOB_OPTION_STRING, OR_NULL, AT(data.eval), DEFAULT("null"), TEXT(PATH), LENGTH(4095),
     HELP("The evaluation images, as data.train; null: no evaluation.")},
    {"/data/train_images", JOB_OPTION_INTEGER, OR_NULL, AT(data.train_images), FLAG(data.has_train_images),
     DEFAULT("null"), RANGE(1, 1e12), UNIT("images"),
     HELP("How many training images there are; null: count them. Where it says fewer than the data hold, an epoch is so many images of "
          "a new shuffle of all of them, so that every image is used (without data.shuffle: the first). Synthetic data has 1281167 (ImageNet's number) unless told otherwise.")},
    {"/data/eval_images", JOB_OPTION_INTEGER, OR_NULL, AT(data.eval_images), FLAG(data.has_eval_images),
     DEFAULT("null"), RANGE(1, 1e12), UNIT("images"),
     HELP("How many evaluation images there are; null: count them. Where it says fewer than the data hold, the first of them are "
          "evaluated. With data.train_images and this one, traind opens no data: only the nodes need to have them.")},
    {"/data/preprocess", CHOICE("tpu", "mlperf", "torchvision", "whole"), AT(data.preprocess), DEFAULT("\"tpu\""),
     HELP("The family of crop, resize and normalisation. They must not be mixed: published torchvision weights expect torchvision. whole takes "
          "images as they are: never cropped, resized only where their size is not model.image_size, values from 0 to 1.")},
    {"/data/augment", JOB_OPTION_BOOLEAN, AT(data.augment), DEFAULT("true"),
     HELP("Random resized crop and flip in training; false: as in evaluation. data.mixup is switched by itself.")},
    {"/data/random_crop", JOB_OPTION_BOOLEAN, AT(data.random_crop), DEFAULT("true"),
     HELP("The crop of data.augment; false: the evaluation's crop. data.preprocess whole has none.")},
    {"/data/random_flip", JOB_OPTION_BOOLEAN, AT(data.random_flip), DEFAULT("true"),
     HELP("The flip of data.augment: half of the images are mirrored; false: none.")},
    {"/data/shuffle", JOB_OPTION_BOOLEAN, AT(data.shuffle), DEFAULT("true"),
     HELP("One global shuffle each epoch; false: the order of the files.")},
    {"/data/locality", CHOICE("global", "node"), AT(data.locality), DEFAULT("\"global\""),
     HELP("node: for training data copied to each node. Node i of n trains on the shards s with s % n = i, shuffled among themselves; data.train "
          "needs to hold no others there. The plan says what that changes. data.eval is read whole on each node.")},
    {"/data/mixup", JOB_OPTION_NUMBER, AT(data.mixup), DEFAULT("0"), RANGE(0, 10),
     HELP("MixUp's alpha: mix pairs of images by a weight from Beta(alpha, alpha); 0: off.")},
    {"/data/prefetch_threads", JOB_OPTION_INTEGER, AT(data.prefetch_threads), DEFAULT("0"), RANGE(0, 256), UNIT("threads"),
     HELP("Threads of a worker that decode images ahead of the engine; 0: one, and more while the engine waits for images, up to the "
          "threads that it computes with.")},
    {"/data/prefetch_batches", JOB_OPTION_INTEGER, AT(data.prefetch_batches), DEFAULT("3"), RANGE(1, 64), UNIT("batches"),
     HELP("Training batches that are decoded ahead of the one in work: more bridge longer pauses of a shared disk, and take memory.")},

    {"/cluster/launcher", CHOICE("local", "slurm"), AT(cluster.launcher), DEFAULT("\"local\""),
     HELP("Who starts the workers: mpirun on this machine, or Slurm.")},
    {"/cluster/nodes", JOB_OPTION_INTEGER, AT(cluster.nodes), DEFAULT("1"), RANGE(1, 100000), UNIT("nodes"),
     HELP("Machines the job runs on; with launcher local more than one needs cluster.hosts. A plan can be made for any number.")},
    {"/cluster/workers_per_node", JOB_OPTION_INTEGER, AT(cluster.workers_per_node), DEFAULT("2"), RANGE(0, 1024), UNIT("workers"),
     HELP("MPI ranks on each node; 0: the plan chooses them and their threads for a node's cores, by speed, memory and the images that batch norm "
          "wants of a worker, says why, and the job keeps the choice. Give global_batch with it: else each worker takes batch_per_worker images, "
          "and their number decides the global batch.")},
    {"/cluster/threads_per_worker", JOB_OPTION_INTEGER, AT(cluster.threads_per_worker), DEFAULT("0"), RANGE(0, 1024), UNIT("threads"),
     HELP("Threads each rank computes with; 0: cores (with cluster.smt hardware threads) / workers.")},
    {"/cluster/bind", CHOICE("auto", "core", "socket", "numa", "none"), AT(cluster.bind), DEFAULT("\"auto\""),
     HELP("What workers are dealt out over before each is bound to threads_per_worker cores of its own: NUMA domains, sockets, or cores, one "
          "worker behind the other. auto: NUMA domains where every worker fits into one, else sockets, else cores; on traind's machine a job "
          "with at most half of the slots is not bound, as mpirun would put the next one on the same cores. The others bind there too. "
          "none: the kernel moves threads as it likes. run_start has what each rank really got, and warns where that is not what was asked for.")},
    {"/cluster/smt", JOB_OPTION_BOOLEAN, AT(cluster.smt), DEFAULT("false"),
     HELP("Count hardware threads instead of cores: threads_per_worker, the slots of cluster.hosts, and what a worker is bound to. Dense "
          "arithmetic gains little by a core's second thread.")},
    {"/cluster/hosts", JOB_OPTION_STRINGS, OR_NULL, AT(cluster.hosts), FLAG(cluster.host_count), DEFAULT("null"),
     TEXT(HOST), LENGTH(255), .most = JOB_HOSTS_MAX,
     HELP("Host names of the nodes, each \"name\" or \"name:slots\" (cores that jobs may take there); the first cluster.nodes that answer are taken, the others stand by. null: this machine, or what the launcher chooses.")},
    {"/cluster/interface", JOB_OPTION_STRING, OR_NULL, AT(cluster.interface), DEFAULT("null"), TEXT(INTERFACE), LENGTH(64),
     HELP("The network interface (eth0) or subnet (10.0.0.0/24) that MPI uses between hosts; null: MPI chooses.")},
    {"/cluster/ssh_port", JOB_OPTION_INTEGER, OR_NULL, AT(cluster.ssh_port), FLAG(cluster.has_ssh_port), DEFAULT("null"), RANGE(1, 65535),
     HELP("The port that sshd listens on at all of cluster.hosts: launch_agent of traind.conf is called with -p and this number. null: what ssh is configured to.")},
    {"/cluster/partition", JOB_OPTION_STRING, OR_NULL, AT(cluster.partition), DEFAULT("null"), TEXT(NAMES), LENGTH(255),
     HELP("Slurm's partition; null: its default.")},
    {"/cluster/account", JOB_OPTION_STRING, OR_NULL, AT(cluster.account), DEFAULT("null"), TEXT(NAMES), LENGTH(255),
     HELP("Slurm's account that pays; null: slurm.account of traind.conf, or Slurm's default.")},
    {"/cluster/constraint", JOB_OPTION_STRING, OR_NULL, AT(cluster.constraint), DEFAULT("null"), TEXT(FEATURES), LENGTH(255),
     HELP("Features that the nodes must have, as sbatch --constraint takes them; null: any nodes.")},
    {"/cluster/time_limit", JOB_OPTION_STRING, OR_NULL, AT(cluster.time_limit), DEFAULT("null"), TEXT(TIME), LENGTH(64),
     HELP("How long an attempt may run, as Slurm writes it (minutes, minutes:seconds, hours:minutes:seconds, days-hours...); it then stops in order, with a checkpoint, and in Slurm goes on in another allocation until it is done. null: no limit, or the partition's.")},
    {"/cluster/mpi_prefix", JOB_OPTION_STRING, OR_NULL, AT(cluster.mpi_prefix), DEFAULT("null"), TEXT(PREFIX), LENGTH(1024),
     HELP("The folder that Open MPI is installed to on the nodes, for mpirun --prefix: its bin has orted, its lib the libraries that the ranks then use. One of mpi_prefixes of traind.conf; null: what the nodes' PATH and linker find.")},
    {"/cluster/mpi_args", JOB_OPTION_STRINGS, AT(cluster.mpi_args), FLAG(cluster.mpi_arg_count), DEFAULT("[]"),
     TEXT(ARGUMENT), LENGTH(1024), .most = JOB_MPI_ARGS_MAX,
     HELP("More arguments for mpirun, each a string of its own. Open MPI repeats some of them to a shell on other hosts, so none may hold a character that shells treat as special. Callers without the admin role may use few of them (traind(8)).")},
    {"/cluster/env", JOB_OPTION_MAP, AT(cluster.env), FLAG(cluster.env_count), DEFAULT("{}"),
     NAMES(VARIABLE, 128), TEXT(SETTING), LENGTH(1024), .most = JOB_ENV_MAX,
     HELP("Environment variables of all ranks, wherever they run: {\"OMP_WAIT_POLICY\": \"active\"}. Names begin with one of job_env_prefixes of traind.conf. "
          "With GNU's OpenMP (libgomp), which the engine is built with, OMP_WAIT_POLICY and GOMP_SPINCOUNT say how long a thread that waits keeps its core; "
          "KMP_BLOCKTIME and others of KMP_ are for Intel's and LLVM's and change nothing. OMP_NUM_THREADS is cluster.threads_per_worker.")},

    {"/global_batch", JOB_OPTION_INTEGER, OR_NULL, AT(global_batch), FLAG(has_global_batch), DEFAULT("null"), RANGE(1, 1e9), UNIT("images"),
     HELP("Images of one update, over all workers. It is shared out evenly, and batch_per_worker follows from it; null: it is nodes x "
          "workers_per_node x batch_per_worker x accumulate_steps.")},
    {"/batch_per_worker", JOB_OPTION_INTEGER, AT(batch_per_worker), DEFAULT("48"), RANGE(1, 65536), UNIT("images"),
     HELP("Images a worker handles at a time. With accumulate_steps \"auto\" the most it may handle; otherwise leave it out beside global_batch.")},
    {"/accumulate_steps", JOB_OPTION_INTEGER, AT(accumulate_steps), DEFAULT("1"), RANGE(1, 1024), WORD("auto"), UNIT("batches"),
     HELP("Batches a worker adds up before the weights change: makes the global batch larger without memory. \"auto\" takes the fewest that "
          "share out global_batch in equal batches of at most batch_per_worker. It does not look at the nodes' memory, which a plan "
          "does not know: state a batch_per_worker whose memory_bytes_per_worker, which the plan tells, fits.")},
    {"/epochs", JOB_OPTION_NUMBER, AT(epochs), DEFAULT("90"), RANGE(0, 10000), ABOVE, UNIT("epochs"),
     HELP("Passes over the training images; fractions are fine.")},
    {"/steps_rounding", CHOICE("floor", "exact"), AT(steps_rounding), DEFAULT("\"floor\""),
     HELP("floor: an epoch is a whole number of updates, and the images of the last partial batch are left out. exact: epochs follow each "
          "other without a gap, a batch may hold images of two, and the run has round(epochs x images / global batch) updates.")},
    {"/steps", JOB_OPTION_INTEGER, OR_NULL, AT(steps), FLAG(has_steps), DEFAULT("null"), RANGE(1, 1e9), UNIT("steps"),
     HELP("Train this many steps instead of epochs; null: epochs decides.")},
    {"/seed", JOB_OPTION_INTEGER, AT(seed), DEFAULT("1"), RANGE(0, 9007199254740991.0),
     HELP("Start of all random numbers: weights, shuffle, crops. The same seed gives the same run.")},
    {"/precision", CHOICE("fp32", "bf16"), AT(precision), DEFAULT("\"fp32\""),
     HELP("The number format of activations, their gradients and the factors of convolutions. bf16: their sums, batch norm's statistics, the "
          "classifier, weights and their gradients stay fp32, and so do checkpoints. Fast where the processor has AMX or AVX512_BF16; elsewhere "
          "it is emulated, no faster than fp32. Not for arch \"cnn\".")},
    {"/loss_scale", JOB_OPTION_NUMBER, AT(loss_scale), DEFAULT("1"), RANGE(0, 16777216), ABOVE,
     HELP("The loss is multiplied by it before the backward pass, and the gradients are divided by it before they are used. bf16 reaches as far "
          "down as fp32 and needs none; a power of two changes no bit of the result. Only with precision \"bf16\".")},

    {"/lr/base", JOB_OPTION_NUMBER, AT(lr.base), DEFAULT("0.1"), RANGE(0, 1e12), ABOVE,
     HELP("The learning rate that suits a global batch of lr.base_batch. Its default depends on optimizer.name: 0.1 for sgd and lars, 0.001 for "
          "adam, adamw and rmsprop, 0.01 for adagrad, 1 for adadelta.")},
    {"/lr/base_batch", JOB_OPTION_INTEGER, AT(lr.base_batch), DEFAULT("256"), RANGE(1, 1e9), UNIT("images"),
     HELP("The global batch that lr.base is meant for.")},
    {"/lr/scaling", CHOICE("linear", "sqrt", "none"), AT(lr.scaling), DEFAULT("\"linear\""),
     HELP("How the peak grows with the global batch B: by B / base_batch, by its square root, or not. The default is sqrt for the adaptive "
          "optimisers: all but sgd and lars.")},
    {"/lr/factor", JOB_OPTION_NUMBER, AT(lr.factor), DEFAULT("1"), RANGE(0, 1000), ABOVE,
     HELP("The scaled rate is multiplied by it.")},
    {"/lr/start", JOB_OPTION_NUMBER, OR_NULL, AT(lr.start), FLAG(lr.has_start), DEFAULT("null"), RANGE(0, 1000),
     HELP("The rate of the first step, from which warm-up climbs to the peak; null: lr.base, or the peak where that is lower.")},
    {"/lr/warmup_epochs", JOB_OPTION_NUMBER, AT(lr.warmup_epochs), DEFAULT("5"), RANGE(0, 10000), UNIT("epochs"),
     HELP("Length of the linear warm-up; 0: none.")},
    {"/lr/decay", CHOICE("poly", "cosine", "step", "exponential", "none"), AT(lr.decay), DEFAULT("\"poly\""),
     HELP("How the rate falls after warm-up.")},
    {"/lr/power", JOB_OPTION_NUMBER, AT(lr.power), DEFAULT("1"), RANGE(0, 10), ABOVE,
     HELP("Exponent of the poly decay; 1 is a straight line.")},
    {"/lr/end", JOB_OPTION_NUMBER, AT(lr.end), DEFAULT("0"), RANGE(0, 1000),
     HELP("The rate that the poly and cosine decays end at.")},
    {"/lr/milestones", JOB_OPTION_NUMBERS, AT(lr.milestones), FLAG(lr.milestone_count), DEFAULT("[30, 60, 80]"),
     RANGE(0, 10000), ABOVE, .most = JOB_MILESTONES_MAX, UNIT("epochs"),
     HELP("Epochs at which the step decay multiplies the rate by lr.gamma, ascending.")},
    {"/lr/gamma", JOB_OPTION_NUMBER, AT(lr.gamma), DEFAULT("0.1"), RANGE(0, 1), ABOVE,
     HELP("The factor of the step decay, and of the exponential decay in lr.decay_epochs.")},
    {"/lr/decay_epochs", JOB_OPTION_NUMBER, AT(lr.decay_epochs), DEFAULT("30"), RANGE(0, 10000), ABOVE, UNIT("epochs"),
     HELP("The exponential decay multiplies the rate by lr.gamma in this time, counted from the end of warm-up.")},
    {"/lr/staircase", JOB_OPTION_BOOLEAN, AT(lr.staircase), DEFAULT("false"),
     HELP("The exponential decay waits for each lr.decay_epochs to be over and then falls at once; false: a little in every step.")},

    {"/optimizer/name", CHOICE("sgd", "lars", "adam", "adamw", "rmsprop", "adagrad", "adadelta"), AT(optimizer.name), DEFAULT("\"sgd\""),
     HELP("Stochastic gradient descent with momentum; LARS on top of it for very large batches; or one of the adaptive optimisers, as PyTorch "
          "defines them and with its defaults.")},
    {"/optimizer/momentum", JOB_OPTION_NUMBER, AT(optimizer.momentum), DEFAULT("0.9"), RANGE(0, 1), BELOW,
     HELP("Momentum of sgd, lars and rmsprop; 0: none, which is the default of rmsprop.")},
    {"/optimizer/nesterov", JOB_OPTION_BOOLEAN, AT(optimizer.nesterov), DEFAULT("false"),
     HELP("Nesterov's form of momentum, of sgd and lars.")},
    {"/optimizer/weight_decay", JOB_OPTION_NUMBER, AT(optimizer.weight_decay), DEFAULT("5e-5"), RANGE(0, 1),
     HELP("weight_decay times the weight is added to the gradient. adamw instead shrinks the weight by learning rate x weight_decay. The "
          "default is 5e-5 for sgd and lars, 0.01 for adamw, 0 for the others.")},
    {"/optimizer/decay_bn", JOB_OPTION_BOOLEAN, AT(optimizer.decay_bn), DEFAULT("false"),
     HELP("Apply weight decay to batch norm's gamma and beta too. The classifier's bias is always decayed, except with lars, which treats it "
          "as gamma and beta (so does the MLPerf reference).")},
    {"/optimizer/lars_eta", JOB_OPTION_NUMBER, AT(optimizer.lars_eta), DEFAULT("0.001"), RANGE(0, 1), ABOVE,
     HELP("LARS's trust coefficient.")},
    {"/optimizer/momentum_correction", JOB_OPTION_BOOLEAN, AT(optimizer.momentum_correction), DEFAULT("false"),
     HELP("When the learning rate changes, scale the momentum with it (Goyal et al. 2017, section 3). It matters for lars, whose momentum "
          "holds the rate; that of sgd holds none, so there it is so already.")},
    {"/optimizer/beta1", JOB_OPTION_NUMBER, AT(optimizer.beta1), DEFAULT("0.9"), RANGE(0, 1), BELOW,
     HELP("How much of the gradients' mean a step of adam or adamw keeps.")},
    {"/optimizer/beta2", JOB_OPTION_NUMBER, AT(optimizer.beta2), DEFAULT("0.999"), RANGE(0, 1), BELOW,
     HELP("How much of the mean of the gradients' squares a step of adam or adamw keeps.")},
    {"/optimizer/eps", JOB_OPTION_NUMBER, AT(optimizer.eps), DEFAULT("1e-8"), RANGE(0, 1), ABOVE,
     HELP("Keeps the adaptive optimisers from dividing by 0. The default is 1e-8 for adam, adamw and rmsprop, 1e-10 for adagrad, 1e-6 for adadelta.")},
    {"/optimizer/alpha", JOB_OPTION_NUMBER, AT(optimizer.alpha), DEFAULT("0.99"), RANGE(0, 1), BELOW,
     HELP("How much of the mean of the gradients' squares a step of rmsprop keeps.")},
    {"/optimizer/centered", JOB_OPTION_BOOLEAN, AT(optimizer.centered), DEFAULT("false"),
     HELP("rmsprop divides by the gradients' standard deviation instead of their root mean square.")},
    {"/optimizer/lr_decay", JOB_OPTION_NUMBER, AT(optimizer.lr_decay), DEFAULT("0"), RANGE(0, 1),
     HELP("adagrad divides the learning rate of step t by 1 + (t - 1) lr_decay.")},
    {"/optimizer/rho", JOB_OPTION_NUMBER, AT(optimizer.rho), DEFAULT("0.9"), RANGE(0, 1), BELOW,
     HELP("How much of its means of squares a step of adadelta keeps.")},
    {"/optimizer/label_smoothing", JOB_OPTION_NUMBER, AT(optimizer.label_smoothing), DEFAULT("0"), RANGE(0, 1), BELOW,
     HELP("Share of each label that is spread evenly over all classes.")},

    {"/eval/every_epochs", JOB_OPTION_NUMBER, AT(eval.every_epochs), DEFAULT("0"), RANGE(0, 10000), UNIT("epochs"),
     HELP("Evaluate this often, and at the end; 0: only at the end.")},
    {"/eval/batch", JOB_OPTION_INTEGER, AT(eval.batch), DEFAULT("200"), RANGE(1, 65536), UNIT("images"),
     HELP("Images of an evaluation batch.")},
    {"/eval/target_top1", JOB_OPTION_NUMBER, OR_NULL, AT(eval.target_top1), FLAG(eval.has_target_top1), DEFAULT("null"),
     RANGE(0, 1), ABOVE,
     HELP("The top-1 accuracy to reach, as a fraction: 0.759 is 75.9 %.")},
    {"/eval/stop_at_target", JOB_OPTION_BOOLEAN, AT(eval.stop_at_target), DEFAULT("false"),
     HELP("End the run at the first evaluation that reaches eval.target_top1.")},
    {"/eval/predictions", JOB_OPTION_BOOLEAN, AT(eval.predictions), DEFAULT("false"),
     HELP("Write predictions.csv: file, label, top-1 and its probability for each evaluation image.")},
    {"/eval/image_size", JOB_OPTION_INTEGER, OR_NULL, AT(eval.image_size), FLAG(eval.has_image_size), DEFAULT("null"), RANGE(28, 1024), UNIT("pixels"),
     HELP("Width and height of evaluation images; null: model.image_size, or its last one. A network is more accurate on images somewhat larger than "
          "those that it was trained on with random crops, which enlarge what they show (Touvron et al. 2019). Not for arch \"cnn\".")},
    {"/eval/flip", JOB_OPTION_BOOLEAN, AT(eval.flip), DEFAULT("false"),
     HELP("Evaluate each image and its mirror image, and take the mean of the two outputs: twice the time of an evaluation, and no longer what "
          "published top-1 accuracies are measured by.")},

    {"/ema/decay", JOB_OPTION_NUMBER, AT(ema.decay), DEFAULT("0"), RANGE(0, 1), BELOW,
     HELP("Keep an average of the weights: a step keeps so much of it and takes the rest from the new weights, batch norm's statistics included. "
          "Evaluations, eval.target_top1 and predictions.csv are then of the averaged weights, and the raw ones are evaluated beside them; a checkpoint has "
          "both (ema.safetensors). 0: none.")},
    {"/ema/from_epoch", JOB_OPTION_NUMBER, AT(ema.from_epoch), DEFAULT("0"), RANGE(0, 10000), UNIT("epochs"),
     HELP("The average begins with the weights after the first step of this epoch.")},
    {"/ema/warmup", JOB_OPTION_BOOLEAN, AT(ema.warmup), DEFAULT("true"),
     HELP("The decay of the average's update n is at most (1 + n) / (10 + n), so that the first weights are soon forgotten (TensorFlow's rule).")},

    {"/checkpoint/every_epochs", JOB_OPTION_NUMBER, AT(checkpoint.every_epochs), DEFAULT("1"), RANGE(0, 10000), UNIT("epochs"),
     HELP("Write a checkpoint this often; 0: not by epochs.")},
    {"/checkpoint/every_steps", JOB_OPTION_INTEGER, AT(checkpoint.every_steps), DEFAULT("0"), RANGE(0, 1e9), UNIT("steps"),
     HELP("Write a checkpoint this often; 0: not by steps.")},
    {"/checkpoint/keep", JOB_OPTION_INTEGER, AT(checkpoint.keep), DEFAULT("2"), RANGE(1, 10000), UNIT("checkpoints"),
     HELP("The newest ones that are kept.")},
    {"/checkpoint/disable", JOB_OPTION_BOOLEAN, AT(checkpoint.disable), DEFAULT("false"),
     HELP("Write none at all: on many nodes they cost throughput.")},

    {"/comm/fusion_bytes", JOB_OPTION_INTEGER, AT(comm.fusion_bytes), DEFAULT("33554432"), RANGE(1024, 1073741824), UNIT("bytes"),
     HELP("Gradients are sent between machines in buckets of this size. Within one machine they go in pieces of 2 MiB, which stay in the cache, and this has no effect.")},
    {"/comm/overlap", JOB_OPTION_BOOLEAN, AT(comm.overlap), DEFAULT("true"),
     HELP("Send gradients between machines while the backward pass goes on. Within one machine they are summed behind it, and this has no effect.")},
    {"/comm/dtype", CHOICE("fp32", "bf16"), AT(comm.dtype), DEFAULT("\"fp32\""),
     HELP("The number format in which gradients are sent. bf16 halves the bytes: each worker's gradients are rounded to 8 bits, summed in fp32, and the "
          "sum is rounded. Each rounding is off by up to 0.4 %, to either side; how many workers there are does not matter.")},
    {"/profile/steps", JOB_OPTION_STEPS, OR_NULL, AT(profile.first_step), FLAG(profile.has_steps), DEFAULT("null"),
     RANGE(1, 1e9), UNIT("steps"),
     HELP("Trace the steps from the first to the last of [first, last], both included.")},
    {"/log/every_seconds", JOB_OPTION_NUMBER, AT(log.every_seconds), DEFAULT("5"), RANGE(0, 86400), UNIT("seconds"),
     HELP("Write a line about the training to the log this often, and at the last step; 0: not by time.")},
    {"/log/every_steps", JOB_OPTION_INTEGER, AT(log.every_steps), DEFAULT("0"), RANGE(0, 1e9), UNIT("steps"),
     HELP("Write such a line this often; 0: not by steps. events.jsonl has every step, whatever is written here.")},
    {"/tensorboard/every_steps", JOB_OPTION_INTEGER, AT(tensorboard.every_steps), DEFAULT("1"), RANGE(1, 1e9), UNIT("steps"),
     HELP("The TensorBoard file holds the summaries of every so many steps; evaluations are always in it.")},
    {"/restart/max", JOB_OPTION_INTEGER, AT(restart.max), DEFAULT("3"), RANGE(0, 1000), UNIT("restarts"),
     HELP("How often a job that failed through no fault of its own is started again from its last checkpoint.")},
    {"/restart/on_fewer_nodes", CHOICE("rescale", "keep_batch"), AT(restart.on_fewer_nodes), DEFAULT("\"rescale\""),
     HELP("When fewer nodes are left: a smaller global batch and learning rate, or the same batch by accumulation.")},
    {"/priority", JOB_OPTION_INTEGER, AT(priority), DEFAULT("0"), RANGE(-1000, 1000),
     HELP("Jobs of a higher priority leave the queue first; each point counts as an hour of waiting (priority_seconds of traind.conf).")},
};

/* What other programs call our keys. */
static const struct {
    const char *word, *pointer;
} aliases[] = {
    {"learning_rate", "/lr/base"},       {"base_lr", "/lr/base"},
    {"peak_lr", "/lr/base"},             {"batch", "/batch_per_worker"},
    {"batch_size", "/batch_per_worker"}, {"train_batch_size", "/batch_per_worker"},
    {"global_batch_size", "/global_batch"}, {"total_batch_size", "/global_batch"},
    {"bs", "/batch_per_worker"},         {"train_steps", "/steps"},
    {"max_train_steps", "/steps"},       {"train_epochs", "/epochs"},
    {"num_epochs", "/epochs"},           {"workers", "/cluster/workers_per_node"},
    {"ranks", "/cluster/workers_per_node"},        {"np", "/cluster/workers_per_node"},
    {"threads", "/cluster/threads_per_worker"},    {"num_classes", "/model/classes"},
    {"wd", "/optimizer/weight_decay"},   {"data_dir", "/data/train"},
    {"dataset", "/data/train"},          {"validation", "/data/eval"},
    {"eval_batch_size", "/eval/batch"},  {"schedule", "/lr/decay"},
    {"width_multiplier", "/model/width"}, {"drop_rate", "/model/dropout"},
    {"pretrained", "/model/init"},       {"weights", "/model/init"},
    {"dtype", "/precision"},             {"resolution", "/model/image_size"},
    {"epsilon", "/optimizer/eps"},       {"decay_rate", "/lr/gamma"},
    {"warmup", "/lr/warmup_epochs"},
    {"disable_checkpoints", "/checkpoint/disable"},
    {"profile_steps", "/profile/steps"}, {"gpus", "/cluster/workers_per_node"},
};
/* clang-format on */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const struct job_option *job_option_at(size_t i)
{
    return i < COUNT(options) ? &options[i] : NULL;
}

const struct job_option *job_option_find(const char *pointer)
{
    for (size_t i = 0; i < COUNT(options); i++)
        if (strcmp(options[i].pointer, pointer) == 0)
            return &options[i];
    return NULL;
}

bool job_option_is_group(const char *pointer)
{
    size_t length = strlen(pointer);

    for (size_t i = 0; i < COUNT(options); i++)
        if (strncmp(options[i].pointer, pointer, length) == 0 && options[i].pointer[length] == '/')
            return true;
    return false;
}

const char *job_option_choice(const struct job_option *option, size_t i)
{
    const struct arch *arch = option->type == JOB_OPTION_ARCH ? arch_at(i) : NULL;

    if (option->type == JOB_OPTION_CHOICE)
        return option->choices[i];
    return arch ? arch->name : NULL;
}

json_t *job_option_default(const struct job_option *option)
{
    return json_loads(option->fallback, JSON_DECODE_ANY, NULL);
}

json_t *job_option_built(const struct job_option *option)
{
    const struct arch *arch;

    if (option->type != JOB_OPTION_ARCH)
        return option->built ? json_loads(option->built, 0, NULL) : NULL;
    json_t *list = json_array();
    for (size_t i = 0; (arch = arch_at(i)); i++)
        if (arch->built)
            json_array_append_new(list, json_string(arch->name));
    return list;
}

static const char *last_part(const char *pointer)
{
    return strrchr(pointer, '/') + 1;
}

/* How far a known key is from an unknown one; smaller is nearer. The same last part in another
 * group is as near as one wrong letter in the right group. */
static size_t key_distance(const char *unknown, const char *known)
{
    const char *a = last_part(unknown), *b = last_part(known);
    bool same_group =
        a - unknown == b - known && strncmp(unknown, known, (size_t)(a - unknown)) == 0;
    size_t edits = suggest_distance(a, b), length = strlen(a);

    if (length >= 3 && edits > 1 && (strstr(b, a) || strstr(a, b)))
        edits = 2;
    if (edits > 1 + length / 4)
        return SUGGEST_WORD_MAX;
    return 2 * edits + (same_group ? 0 : 2);
}

const char *job_option_nearest(const char *unknown)
{
    size_t best = SUGGEST_WORD_MAX, distance;
    const char *nearest = NULL;

    for (size_t i = 0; i < COUNT(options); i++)
        if ((distance = key_distance(unknown, options[i].pointer)) < best) {
            best = distance;
            nearest = options[i].pointer;
        }
    for (size_t i = 0; i < COUNT(aliases); i++)
        if (suggest_distance(last_part(unknown), aliases[i].word) == 0 && best > 0)
            return aliases[i].pointer;
    return nearest;
}

/* "from 1 to 100000", "above 0, at most 1000", "from 0 up to but not including 1" */
static void describe_range(const struct job_option *o, char *text, size_t bytes)
{
    if (o->above_min && o->below_max)
        snprintf(text, bytes, "above %.16g and below %.16g", o->min, o->max);
    else if (o->above_min)
        snprintf(text, bytes, "above %.16g, at most %.16g", o->min, o->max);
    else if (o->below_max)
        snprintf(text, bytes, "from %.16g, below %.16g", o->min, o->max);
    else
        snprintf(text, bytes, "from %.16g to %.16g", o->min, o->max);
}

static void describe_choices(const struct job_option *o, char *text, size_t bytes)
{
    size_t used = (size_t)snprintf(text, bytes, "one of");
    const char *choice;

    for (size_t i = 0; (choice = job_option_choice(o, i)) && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s \"%s\"", i ? "," : "", choice);
}

static const char *made_of(const struct job_option *o)
{
    const char *letters = job_text_letters(o->text);
    return letters ? letters : "printable characters";
}

void job_option_expects(const struct job_option *o, char text[JOB_OPTION_EXPECTS_BYTES])
{
    size_t bytes = JOB_OPTION_EXPECTS_BYTES;
    char range[128];

    describe_range(o, range, sizeof range);
    switch (o->type) {
    case JOB_OPTION_BOOLEAN:
        snprintf(text, bytes, "true or false");
        break;
    case JOB_OPTION_INTEGER:
        snprintf(text, bytes, "an integer %s%s%s%s", range, o->word ? ", or \"" : "",
                 o->word ? o->word : "", o->word ? "\"" : "");
        break;
    case JOB_OPTION_NUMBER:
        snprintf(text, bytes, "a number %s", range);
        break;
    case JOB_OPTION_STRING:
        snprintf(text, bytes, "a string of %.0f to %.0f %s", o->min, o->max, made_of(o));
        break;
    case JOB_OPTION_CHOICE:
    case JOB_OPTION_ARCH:
        describe_choices(o, text, bytes);
        break;
    case JOB_OPTION_STRINGS:
        snprintf(text, bytes, "a list of at most %zu strings of %.0f to %.0f %s", o->most, o->min,
                 o->max, made_of(o));
        break;
    case JOB_OPTION_NUMBERS:
        snprintf(text, bytes, "a list of at most %zu numbers %s", o->most, range);
        break;
    case JOB_OPTION_MAP:
        snprintf(text, bytes,
                 "an object of at most %zu names of 1 to %zu %s, each with a string of %.0f to "
                 "%.0f %s",
                 o->most, o->name_max, job_text_letters(o->names), o->min, o->max, made_of(o));
        break;
    case JOB_OPTION_SIZES:
        job_sizes_expects(o->min, o->max, text, bytes);
        break;
    case JOB_OPTION_STEPS:
        snprintf(text, bytes, "a list [first, last] of two integers %s, first <= last", range);
        break;
    }
    if (o->nullable)
        strncat(text, ", or null", bytes - strlen(text) - 1);
}
