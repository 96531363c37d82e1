accelerate launch --num_processes 7 src/grpo.py --config trl-grpo-2025.yaml
